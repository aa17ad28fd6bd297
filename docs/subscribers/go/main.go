// Prints the decisions of a cluster, each once: all that exist, then those to come.
//
//	NATS_URL=tls://HOST:4222 NATS_CA=ca.crt NATS_PASSWORD_FILE=password \
//	    go run . [CLUSTER [LAST_SEQUENCE]]
//
// See docs/bus.md, "Log in and catch up".
package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"log"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
)

func main() {
	arguments := append(os.Args[1:], "", "")
	cluster := cmp.Or(arguments[0], "local")
	last, _ := strconv.Atoi(arguments[1])
	secret := must(os.ReadFile(os.Getenv("NATS_PASSWORD_FILE")))
	login, password, _ := strings.Cut(strings.TrimSpace(string(secret)), ":")
	user, _, _ := strings.Cut(login, ".")
	options := []nats.Option{
		nats.UserInfo(login, password), nats.CustomInboxPrefix("_INBOX." + user), nats.MaxReconnects(-1),
	}
	if authority := os.Getenv("NATS_CA"); authority != "" {
		options = append(options, nats.RootCAs(authority), nats.TLSHandshakeFirst())
	}
	bus := must(nats.Connect(cmp.Or(os.Getenv("NATS_URL"), nats.DefaultURL), options...))
	name := strings.TrimPrefix(nats.NewInbox(), nats.InboxPrefix)
	pages := must(bus.SubscribeSync("pages." + strings.ToUpper(user) + "S." + name))
	live := must(bus.SubscribeSync("evt.dec.v1." + cluster + ".>"))
	live.SetPendingLimits(-1, -1)

	// show prints a decision that was not printed before.
	show := func(message *nats.Msg) {
		if sequence := number(message, "Nats-Sequence"); sequence > last {
			last = sequence
			fmt.Println(sequence, string(message.Data))
		}
	}
	// readPage prints the next page; true: it came whole and is the last.
	readPage := func() (bool, error) {
		wanted := map[string]any{"seq": last + 1, "next_by_subj": "dec.v1." + cluster + ".>", "to": name}
		if _, err := bus.Request("JS.CORE.API.DIRECT.GET.DEC", must(json.Marshal(wanted)), 10*time.Second); err != nil {
			return false, err
		}
		for previous := 0; ; {
			message, err := pages.NextMsg(10 * time.Second)
			if err != nil {
				return false, err
			}
			isNext := number(message, "Nats-Last-Sequence") == previous
			if message.Header.Get("Status") != "" {
				return isNext && number(message, "Nats-Num-Pending") == 0, nil
			}
			if isNext {
				previous = number(message, "Nats-Sequence")
				show(message)
			}
		}
	}

	for caughtUpIn := uint64(math.MaxUint64); !bus.IsClosed(); {
		message, _ := live.NextMsg(time.Second)
		for now := bus.Stats().Reconnects; now != caughtUpIn && !bus.IsClosed(); now = bus.Stats().Reconnects {
			isLast, err := readPage()
			if err != nil {
				log.Print("asking again: ", err)
				time.Sleep(time.Second)
			} else if isLast {
				caughtUpIn = now
			}
		}
		if message != nil {
			show(message)
		}
	}
	log.Fatal(bus.LastError())
}

// number reads a header; 0 if the message lacks it.
func number(message *nats.Msg, header string) int {
	value, _ := strconv.Atoi(message.Header.Get(header))
	return value
}

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}
