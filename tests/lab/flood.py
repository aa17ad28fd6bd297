"""Who floods a server: a process that sends one request again and again, for ever."""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

CONNECTIONS = 16
AT_ONCE = 200


@contextlib.contextmanager
def flooding(
    port: int, login: str, subject: str, body: bytes, heard: str
) -> Iterator[None]:
    """Flood from many connections while the block runs; `heard` is the reply."""
    login_name, _, password = login.partition(":")
    told = [str(port), login_name, password, subject, body.decode(), heard]
    command = [sys.executable, "-m", "tests.lab.flood", *told]
    process = subprocess.Popen(command)
    try:
        yield
    finally:
        process.kill()
        process.wait()


def _flood(port: int, hello: bytes, request: bytes) -> None:
    while True:
        with contextlib.suppress(OSError):
            client = socket.create_connection(("127.0.0.1", port))
            client.sendall(hello)
            # In another thread: who does not read is sent away.
            threading.Thread(target=_drain, args=(client,), daemon=True).start()
            while True:
                client.sendall(request * AT_ONCE)
        time.sleep(0.1)


def _drain(client: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while client.recv(1 << 20):
            pass


def main() -> None:
    """Flood until killed."""
    port, login, password, subject, body, heard = sys.argv[1:]
    connect = json.dumps(
        {"verbose": False, "user": login, "pass": password, "headers": True}
    )
    hello = f"CONNECT {connect}\r\nSUB {heard} 1\r\n".encode()
    request = f"PUB {subject} {heard} {len(body)}\r\n{body}\r\n".encode()
    for _ in range(CONNECTIONS):
        thread = threading.Thread(
            target=_flood, args=(int(port), hello, request), daemon=True
        )
        thread.start()
    time.sleep(600)


if __name__ == "__main__":
    main()
