// Prints what is decided for gangs, as it is decided.
//
//	NATS_URL=tls://platform:PASSWORD@nats:4222 NATS_CA=ca.crt go run . [CLUSTER]
package main

import (
	"encoding/json"
	"fmt"
	"log"
	"os"

	"github.com/nats-io/nats.go"
)

// Decision has what every decision says; docs/asyncapi.yaml has all of its fields.
type Decision struct {
	Type, Namespace, Name string
	Members               []struct{ Member, Node string }
	Reasons               []struct{ Message string }
}

func main() {
	cluster, url := "local", nats.DefaultURL
	if len(os.Args) > 1 {
		cluster = os.Args[1]
	}
	if text := os.Getenv("NATS_URL"); text != "" {
		url = text
	}
	var options []nats.Option
	if authority := os.Getenv("NATS_CA"); authority != "" {
		options = append(options, nats.RootCAs(authority))
	}
	bus, err := nats.Connect(url, options...)
	if err != nil {
		log.Fatal(err)
	}
	decisions := make(chan *nats.Msg, 64)
	if _, err := bus.ChanSubscribe("evt.dec.v1."+cluster+".>", decisions); err != nil {
		log.Fatal(err)
	}
	log.Print("following ", cluster)
	for message := range decisions {
		var decision Decision
		if err := json.Unmarshal(message.Data, &decision); err != nil {
			log.Print(message.Subject, ": ", err)
			continue
		}
		fmt.Println(decision.Type, decision.Namespace+"/"+decision.Name, decision.Members, decision.Reasons)
	}
}
