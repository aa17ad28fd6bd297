"""Prints the decisions of a cluster, each once: all that exist, then those to come.

NATS_URL=tls://HOST:4222 NATS_CA=ca.crt NATS_PASSWORD_FILE=password \
    python subscriber.py [CLUSTER [LAST_SEQUENCE]]

Needs nats-py. See docs/bus.md, "Log in and catch up".
"""

import asyncio
import json
import os
import ssl
import sys
from contextlib import suppress
from pathlib import Path

import nats
from nats.aio.msg import Msg

SECRET = Path(os.environ["NATS_PASSWORD_FILE"]).read_text(encoding="utf-8")
LOGIN, _, PASSWORD = SECRET.strip().partition(":")


async def main(cluster: str = "local", last_sequence: str = "0") -> None:
    """Follow the decisions behind a sequence until Ctrl-C."""
    tls = {}
    if authority := os.environ.get("NATS_CA"):
        context = ssl.create_default_context(cafile=authority)
        tls = {"tls": context, "tls_handshake_first": True}
    bus = await nats.connect(
        os.environ.get("NATS_URL", "nats://127.0.0.1:4222"),
        user=LOGIN,
        password=PASSWORD,
        inbox_prefix=f"_INBOX.{LOGIN.partition('.')[0]}",
        max_reconnect_attempts=-1,
        **tls,
    )
    last, news = int(last_sequence), asyncio.Event()

    async def hear(_: Msg) -> None:
        news.set()

    await bus.subscribe(f"evt.dec.v1.{cluster}.>", cb=hear)
    while True:
        news.clear()
        wanted = {"seq": last + 1, "next_by_subj": f"dec.v1.{cluster}.>"}
        try:
            answer = await bus.request(
                "JS.CORE.API.DIRECT.GET.DEC", json.dumps(wanted).encode(), timeout=10
            )
            line, _, bodies = answer.data.partition(b"\n")
            page = json.loads(line)
        except (nats.errors.Error, ValueError) as error:
            print("asking again:", error, file=sys.stderr, flush=True)
            await asyncio.sleep(1)
            continue
        begin = 0
        for message in page["messages"]:
            end = begin + message["bytes"]
            last = message["sequence"]
            print(last, bodies[begin:end].decode(), flush=True)
            begin = end
        if not page["pending"]:
            with suppress(TimeoutError):
                await asyncio.wait_for(news.wait(), timeout=1)


asyncio.run(main(*sys.argv[1:]))
