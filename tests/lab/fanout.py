"""Who subscribes to the same subject thousands of times, in a process of its own."""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

CONNECTIONS = 32
SUBSCRIPTIONS = 125
"""Of a connection."""
_AGAIN_S = 0.5
"""Some subscribe anew so often, which is work for the server as well."""


@contextlib.contextmanager
def subscribed(
    port: int, login: str, subject: str, *, reads: bool, anew: bool = False
) -> Iterator[None]:
    """Subscribe from many connections while the block runs.

    Who does not read what comes is sent away by the server, and comes back. Some come
    `anew` all the time.
    """
    name, _, password = login.partition(":")
    told = [str(port), name, password, subject, str(int(reads)), str(int(anew))]
    process = subprocess.Popen([sys.executable, "-m", "tests.lab.fanout", *told])
    try:
        yield
    finally:
        process.kill()
        process.wait()


def _subscribe(port: int, hello: bytes, *, reads: bool, anew: bool) -> None:
    while True:
        with contextlib.suppress(OSError), contextlib.closing(_connect(port)) as client:
            client.sendall(hello)
            client.settimeout(_AGAIN_S)
            while True:
                if reads:
                    with contextlib.suppress(TimeoutError):
                        if not client.recv(1 << 20):
                            break
                else:
                    time.sleep(_AGAIN_S)
                    client.sendall(b"PONG\r\n")
                if anew:
                    break
        time.sleep(0.1)


def _connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port))


def main() -> None:
    """Subscribe until killed."""
    port, name, password, subject, reads, anew = sys.argv[1:]
    connect = json.dumps(
        {"verbose": False, "user": name, "pass": password, "headers": True}
    )
    subscriptions = (f"SUB {subject} {n}\r\n" for n in range(1, SUBSCRIPTIONS + 1))
    hello = "".join((f"CONNECT {connect}\r\n", *subscriptions)).encode()
    for number in range(CONNECTIONS):
        threading.Thread(
            target=_subscribe,
            args=(int(port), hello),
            kwargs={
                "reads": bool(int(reads)),
                "anew": bool(int(anew)) and not number % 8,
            },
            daemon=True,
        ).start()
    time.sleep(600)


if __name__ == "__main__":
    main()
