"""Who floods a server: a process that sends one request again and again, for ever.

Where the request has NUMBER in it, each has another number there.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

CONNECTIONS = 16
AT_ONCE = 200
NUMBER = "0" * 12


@contextlib.contextmanager
def flooding(
    port: int,
    login: str,
    subject: str,
    body: bytes,
    heard: str,
    *,
    connections: int = CONNECTIONS,
) -> Iterator[None]:
    """Flood from connections while the block runs; `heard` is the reply, if any."""
    login_name, _, password = login.partition(":")
    told = [str(port), login_name, password, subject, body.decode(), heard]
    told.append(str(connections))
    command = [sys.executable, "-m", "tests.lab.flood", *told]
    process = subprocess.Popen(command)
    try:
        yield
    finally:
        process.kill()
        process.wait()


def _flood(port: int, hello: bytes, request: bytes, number: Iterator[int]) -> None:
    while True:
        with contextlib.suppress(OSError):
            client = socket.create_connection(("127.0.0.1", port))
            client.sendall(hello)
            # In another thread: who does not read is sent away.
            threading.Thread(target=_drain, args=(client,), daemon=True).start()
            while True:
                client.sendall(_make_requests(request, number))
        time.sleep(0.1)


def _make_requests(request: bytes, number: Iterator[int]) -> bytes:
    if NUMBER.encode() not in request:
        return request * AT_ONCE
    numbers = (b"%012d" % next(number) for _ in range(AT_ONCE))
    return b"".join(request.replace(NUMBER.encode(), each) for each in numbers)


def _drain(client: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while client.recv(1 << 20):
            pass


def main() -> None:
    """Flood until killed."""
    port, login, password, subject, body, heard, connections = sys.argv[1:]
    connect = json.dumps(
        {"verbose": False, "user": login, "pass": password, "headers": True}
    )
    hello = f"CONNECT {connect}\r\n".encode()
    hello += f"SUB {heard} 1\r\n".encode() if heard else b""
    request = f"PUB {subject} {heard} {len(body)}\r\n{body}\r\n".encode()
    number = itertools.count(1)
    for _ in range(int(connections)):
        thread = threading.Thread(
            target=_flood, args=(int(port), hello, request, number), daemon=True
        )
        thread.start()
    time.sleep(600)


if __name__ == "__main__":
    main()
