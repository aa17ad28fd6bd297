// Prints the decisions of a cluster, each once: all that exist, then those to come.
//
//   NATS_URL=tls://HOST:4222 NATS_CA=ca.crt NATS_PASSWORD_FILE=password \
//       node subscriber.js [CLUSTER [LAST_SEQUENCE]]
//
// Needs `npm install` here. See docs/bus.md, "Log in and catch up".
import { randomUUID } from "node:crypto";
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
const name = randomUUID().replaceAll("-", "");
let last = Number(lastSequence);
let pageMessage = () => {};
bus.subscribe(`pages.${user.toUpperCase()}S.${name}`, { callback: (_, message) => pageMessage(message) });
const live = bus.subscribe(`evt.dec.v1.${cluster}.>`);

const number = (message, header) => Number(message.headers.get(header));

/** Print a decision that was not printed before. */
function show(message) {
  const sequence = number(message, "Nats-Sequence");
  if (sequence <= last) return;
  last = sequence;
  console.log(sequence, message.string());
}

/** Print the next page; true: it came whole and is the last. */
async function readPage() {
  let previous = 0;
  const page = new Promise((resolve) => {
    pageMessage = (message) => {
      const isNext = number(message, "Nats-Last-Sequence") === previous;
      if (message.headers.code) resolve(isNext && number(message, "Nats-Num-Pending") === 0);
      else if (isNext) {
        previous = number(message, "Nats-Sequence");
        show(message);
      }
    };
  });
  const wanted = { seq: last + 1, next_by_subj: `dec.v1.${cluster}.>`, to: name };
  await bus.request("JS.CORE.API.DIRECT.GET.DEC", JSON.stringify(wanted), { timeout: 10_000 });
  return Promise.race([page, setTimeout(10_000, false)]);
}

/** Print all that exists. */
async function catchUp() {
  for (let isLast = false; !isLast; ) {
    isLast = await readPage().catch(async (error) => {
      console.error("asking again:", error.message);
      await setTimeout(1_000);
    });
  }
}

let caughtUp = catchUp();
(async () => {
  for await (const { type } of bus.status()) if (type === "disconnect") caughtUp = caughtUp.then(catchUp);
})();
for await (const message of live) {
  await caughtUp;
  show(message);
}
