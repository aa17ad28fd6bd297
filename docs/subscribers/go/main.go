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
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
)

// Decision has what is printed; docs/asyncapi.yaml has all fields.
type Decision struct {
	Type, Namespace, Name string
	Members               []struct{ Node string }
	Reasons               []struct{ Message string }
}

// Subscriber knows the sequence of the last decision that it printed.
type Subscriber struct {
	bus           *nats.Conn
	pages, live   *nats.Subscription
	cluster, name string
	last          int
}

func main() {
	arguments := append(os.Args[1:], "", "")
	s := &Subscriber{cluster: cmp.Or(arguments[0], "local"), name: strings.TrimPrefix(nats.NewInbox(), nats.InboxPrefix)}
	s.last, _ = strconv.Atoi(arguments[1])
	text := must(os.ReadFile(os.Getenv("NATS_PASSWORD_FILE")))
	login, password, _ := strings.Cut(strings.TrimSpace(string(text)), ":")
	user, _, _ := strings.Cut(login, ".")
	options := []nats.Option{
		nats.UserInfo(login, password), nats.CustomInboxPrefix("_INBOX." + user), nats.MaxReconnects(-1),
	}
	if authority := os.Getenv("NATS_CA"); authority != "" {
		options = append(options, nats.RootCAs(authority), nats.TLSHandshakeFirst())
	}
	s.bus = must(nats.Connect(cmp.Or(os.Getenv("NATS_URL"), nats.DefaultURL), options...))
	s.pages = must(s.bus.SubscribeSync("pages." + strings.ToUpper(user) + "S." + s.name))
	s.live = must(s.bus.SubscribeSync("evt.dec.v1." + s.cluster + ".>"))
	s.live.SetPendingLimits(-1, -1)
	s.follow()
}

// follow prints what comes, and first what was missed while there was no connection.
func (s *Subscriber) follow() {
	caughtUp := false
	for connection := uint64(0); ; {
		message, _ := s.live.NextMsg(time.Second) // nothing after a second: the connection may be new
		for now := s.bus.Stats().Reconnects; !caughtUp || now != connection; now = s.bus.Stats().Reconnects {
			isLast, err := s.readPage()
			caughtUp, connection = isLast, now
			if err != nil {
				log.Print("asking again: ", err)
				time.Sleep(time.Second)
			}
		}
		if message != nil {
			s.show(message)
		}
	}
}

// readPage prints the next page; true: it came whole and is the last.
func (s *Subscriber) readPage() (bool, error) {
	wanted := map[string]any{"seq": s.last + 1, "next_by_subj": "dec.v1." + s.cluster + ".>", "to": s.name}
	if _, err := s.bus.Request("JS.CORE.API.DIRECT.GET.DEC", must(json.Marshal(wanted)), 10*time.Second); err != nil {
		return false, err
	}
	for previous := 0; ; {
		message, err := s.pages.NextMsg(10 * time.Second)
		if err != nil {
			return false, err
		}
		isNext := number(message, "Nats-Last-Sequence") == previous
		if message.Header.Get("Status") != "" {
			return isNext && number(message, "Nats-Num-Pending") == 0, nil
		}
		if isNext {
			previous = number(message, "Nats-Sequence")
			s.show(message)
		}
	}
}

// show prints a decision that was not printed before.
func (s *Subscriber) show(message *nats.Msg) {
	sequence := number(message, "Nats-Sequence")
	if sequence <= s.last {
		return
	}
	s.last = sequence
	var decision Decision
	if err := json.Unmarshal(message.Data, &decision); err != nil {
		log.Print(message.Subject, ": ", err)
		return
	}
	var said []string
	for _, member := range decision.Members {
		said = append(said, member.Node)
	}
	for _, reason := range decision.Reasons {
		said = append(said, reason.Message)
	}
	fmt.Println(sequence, decision.Type, decision.Namespace+"/"+decision.Name, strings.Join(said, "; "))
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
