// Prints the decisions of a cluster, each once: all that exist, then those to come.
//
//	NATS_URL=tls://HOST:4222 NATS_CA=ca.crt NATS_PASSWORD_FILE=password \
//	    go run . [CLUSTER [LAST_SEQUENCE]]
//
// See docs/bus.md, "Log in and catch up".
package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
)

// page is the first line of what a request for a page is answered with.
type page struct {
	Messages []struct{ Sequence, Bytes int }
	Pending  int
}

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
	news := make(chan struct{}, 1)
	must(bus.Subscribe("evt.dec.v1."+cluster+".>", func(*nats.Msg) {
		select {
		case news <- struct{}{}:
		default:
		}
	}))

	for !bus.IsClosed() {
		wanted := map[string]any{"seq": last + 1, "next_by_subj": "dec.v1." + cluster + ".>"}
		answer, err := bus.Request("JS.CORE.API.DIRECT.GET.DEC", must(json.Marshal(wanted)), 10*time.Second)
		var got page
		var bodies []byte
		if err == nil {
			var line []byte
			line, bodies, _ = bytes.Cut(answer.Data, []byte("\n"))
			err = json.Unmarshal(line, &got)
		}
		if err != nil {
			log.Print("asking again: ", err)
			time.Sleep(time.Second)
			continue
		}
		for _, message := range got.Messages {
			last = message.Sequence
			fmt.Println(last, string(bodies[:message.Bytes]))
			bodies = bodies[message.Bytes:]
		}
		if got.Pending == 0 {
			select {
			case <-news:
			case <-time.After(time.Second):
			}
		}
	}
	log.Fatal(bus.LastError())
}

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}
