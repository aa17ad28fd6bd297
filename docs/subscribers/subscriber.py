"""Prints what is decided for gangs, as it is decided; needs nats-py.

NATS_URL=tls://platform:PASSWORD@nats:4222 NATS_CA=ca.crt python subscriber.py [CLUSTER]
"""

import asyncio
import json
import os
import ssl
import sys

import nats


def describe(decision: dict) -> str:
    """Say in a line what a decision says; docs/asyncapi.yaml has all of its fields."""
    if decision["type"] == "GangAllocated":
        pods = [
            f"{m['member']}/{m['index']} on {m['node']}" for m in decision["members"]
        ]
        return ", ".join(pods)
    return "; ".join(reason["message"] for reason in decision.get("reasons", ()))


async def main() -> None:
    """Follow the decisions of a cluster until Ctrl-C.

    A subscriber without a consumer is told nothing of what was decided while it was
    away: the last decision of each gang is in the stream DEC.
    """
    cluster = sys.argv[1] if len(sys.argv) > 1 else "local"
    authority = os.environ.get("NATS_CA")
    bus = await nats.connect(
        os.environ.get("NATS_URL", "nats://127.0.0.1:4222"),
        tls=ssl.create_default_context(cafile=authority) if authority else None,
    )
    decisions = await bus.subscribe(f"evt.dec.v1.{cluster}.>")
    print(f"following {cluster}", file=sys.stderr, flush=True)
    async for message in decisions.messages:
        decision = json.loads(message.data)
        name = f"{decision['namespace']}/{decision['name']}"
        print(decision["type"], name, describe(decision), flush=True)


asyncio.run(main())
