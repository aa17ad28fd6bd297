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
import uuid
from contextlib import suppress
from pathlib import Path

import nats
from nats.aio.msg import Msg

SECRET = Path(os.environ["NATS_PASSWORD_FILE"]).read_text(encoding="utf-8")
LOGIN, _, PASSWORD = SECRET.strip().partition(":")


async def main(cluster: str = "local", last_sequence: str = "0") -> None:
    """Follow the decisions behind a sequence until Ctrl-C."""
    user, name, last = LOGIN.partition(".")[0], uuid.uuid4().hex, int(last_sequence)
    tls = {}
    if authority := os.environ.get("NATS_CA"):
        context = ssl.create_default_context(cafile=authority)
        tls = {"tls": context, "tls_handshake_first": True}
    bus = await nats.connect(
        os.environ.get("NATS_URL", "nats://127.0.0.1:4222"),
        user=LOGIN,
        password=PASSWORD,
        inbox_prefix=f"_INBOX.{user}",
        max_reconnect_attempts=-1,
        **tls,
    )
    pages = await bus.subscribe(f"pages.{user.upper()}S.{name}")
    live = await bus.subscribe(
        f"evt.dec.v1.{cluster}.>", pending_msgs_limit=0, pending_bytes_limit=0
    )

    def show(message: Msg) -> None:
        """Print a decision that was not printed before."""
        nonlocal last
        sequence = int(message.headers["Nats-Sequence"])
        if sequence > last:
            last = sequence
            print(sequence, message.data.decode(), flush=True)

    async def read_page() -> bool:
        """Print the next page; True if it came whole and is the last."""
        wanted = {"seq": last + 1, "next_by_subj": f"dec.v1.{cluster}.>", "to": name}
        body, previous = json.dumps(wanted).encode(), 0
        await bus.request("JS.CORE.API.DIRECT.GET.DEC", body, timeout=10)
        while "Status" not in (page := await pages.next_msg(timeout=10)).headers:
            if int(page.headers["Nats-Last-Sequence"]) == previous:
                previous = int(page.headers["Nats-Sequence"])
                show(page)
        is_whole = int(page.headers.get("Nats-Last-Sequence", 0)) == previous
        return is_whole and int(page.headers.get("Nats-Num-Pending", 0)) == 0

    caught_up_in = -1
    while True:
        message = None
        with suppress(nats.errors.TimeoutError):
            message = await live.next_msg(timeout=1)
        while caught_up_in != (connection := bus.stats["reconnects"]):
            try:
                if await read_page():
                    caught_up_in = connection
            except (nats.errors.TimeoutError, nats.errors.NoRespondersError) as error:
                print("asking again:", error, file=sys.stderr, flush=True)
                await asyncio.sleep(1)
        if message is not None:
            show(message)


asyncio.run(main(*sys.argv[1:]))
