// Prints the decisions of a cluster, each once: all that exist, then those to come.
//
//   NATS_URL=tls://HOST:4222 NATS_CA=ca.crt NATS_PASSWORD_FILE=password \
//       node subscriber.js [CLUSTER [LAST_SEQUENCE]]
//
// Needs `npm install` here. See docs/bus.md, "Log in and catch up".
import { readFileSync } from "node:fs";
import { setTimeout } from "node:timers/promises";
import { connect } from "@nats-io/transport-node";

const [cluster = "local", lastSequence = "0"] = process.argv.slice(2);
const { NATS_URL = "nats://127.0.0.1:4222", NATS_CA, NATS_PASSWORD_FILE } = process.env;
const [login, pass] = readFileSync(NATS_PASSWORD_FILE, "utf8").trim().split(":");
const [user] = login.split(".");
const bus = await connect({
  servers: NATS_URL,
  user: login,
  pass,
  inboxPrefix: `_INBOX.${user}`,
  maxReconnectAttempts: -1,
  ...(NATS_CA && { tls: { caFile: NATS_CA, handshakeFirst: true } }),
});
bus.closed().then((error) => process.exit(error ? 1 : 0));
let last = Number(lastSequence);
let hear = () => {};
bus.subscribe(`evt.dec.v1.${cluster}.>`, { callback: () => hear() });

const text = new TextDecoder();
for (;;) {
  const news = new Promise((resolve) => (hear = resolve));
  try {
    const wanted = { seq: last + 1, next_by_subj: `dec.v1.${cluster}.>` };
    const { data } = await bus.request("JS.CORE.API.DIRECT.GET.DEC", JSON.stringify(wanted), { timeout: 10_000 });
    let begin = data.indexOf(10) + 1;
    const page = JSON.parse(text.decode(data.subarray(0, begin)));
    for (const { sequence, bytes } of page.messages) {
      last = sequence;
      console.log(sequence, text.decode(data.subarray(begin, begin + bytes)));
      begin += bytes;
    }
    if (page.pending === 0) await Promise.race([news, setTimeout(1_000)]);
  } catch (error) {
    console.error("asking again:", error.message);
    await setTimeout(1_000);
  }
}
