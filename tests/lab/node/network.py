"""What a node without a cluster's network lacks: the API server's address, and names.

Runs in the network namespace of a node. Connections to the Service `kubernetes` go to
the API server outside over a Unix socket; names of pods behind headless Services are
answered from what the API server says. It plays what kube-proxy and CoreDNS would do.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import sys
from pathlib import Path
from typing import Any

from tests.lab.node.settings import API_ADDRESS, DNS_ADDRESS

OUTSIDE = "api.sock"
_TTL_S, _TYPE_A, _CLASS_IN = 1, 1, 1


async def _pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass  # one side is gone; the other is told by the end
    finally:
        writer.close()


async def join(
    one: tuple[asyncio.StreamReader, asyncio.StreamWriter],
    other: tuple[asyncio.StreamReader, asyncio.StreamWriter],
) -> None:
    """Pass on what comes on either connection, until both have ended."""
    await asyncio.gather(_pipe(one[0], other[1]), _pipe(other[0], one[1]))


class Names:
    """Answers who asks by UDP for the address of a name."""

    def __init__(self, folder: Path) -> None:
        access = json.loads((folder / "names.json").read_text())
        self._token = access["token"]
        self._tls = ssl.create_default_context(cafile=access["authority"])

    async def find(self, name: str) -> list[str]:
        """Give the addresses of `[pod.]service.namespace.svc[.cluster.local]`."""
        labels = name.removesuffix(".cluster.local").split(".")
        if len(labels) not in (3, 4) or labels[-1] != "svc":
            return []
        *host, service, namespace, _ = labels
        path = f"/api/v1/namespaces/{namespace}"
        found = await self._get(f"{path}/services/{service}")
        if found.get("kind") != "Service":
            return []
        selected = found["spec"].get("selector", {})
        select = ",".join(f"{key}%3D{value}" for key, value in selected.items())
        pods = await self._get(f"{path}/pods?labelSelector={select}")
        return [
            pod["status"]["podIP"]
            for pod in pods["items"]
            if pod["status"].get("podIP")
            and "deletionTimestamp" not in pod["metadata"]
            and host in ([], [pod["spec"].get("hostname")])
        ]

    async def _get(self, path: str) -> dict[str, Any]:
        reader, writer = await asyncio.open_connection(API_ADDRESS, 443, ssl=self._tls)
        asked = f"GET {path} HTTP/1.0\r\nAuthorization: Bearer {self._token}\r\n\r\n"
        writer.write(asked.encode())
        answer = await reader.read()
        writer.close()
        found: dict[str, Any] = json.loads(answer.partition(b"\r\n\r\n")[2])
        return found


class _Datagrams(asyncio.DatagramProtocol):
    def __init__(self, names: Names) -> None:
        self._names = names
        self._answering: set[asyncio.Task[None]] = set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: Any = transport

    def datagram_received(self, data: bytes, addr: Any) -> None:
        task = asyncio.create_task(self._answer(data, addr))
        self._answering.add(task)
        task.add_done_callback(self._answering.discard)

    async def _answer(self, data: bytes, sender: Any) -> None:
        name, end = _question(data)
        kind = int.from_bytes(data[end : end + 2], "big")
        addresses = await self._names.find(name)
        given = addresses if kind == _TYPE_A else []
        flags = 0x8580 if addresses else 0x8583  # an answer, or no such name
        counts = (flags, 1, len(given), 0, 0)
        answer = data[:2] + b"".join(count.to_bytes(2, "big") for count in counts)
        answer += data[12 : end + 4]
        for address in given:
            answer += b"\xc0\x0c" + _TYPE_A.to_bytes(2, "big")
            answer += _CLASS_IN.to_bytes(2, "big") + _TTL_S.to_bytes(4, "big")
            answer += b"\x00\x04" + bytes(map(int, address.split(".")))
        self._transport.sendto(answer, sender)


def _question(data: bytes) -> tuple[str, int]:
    """Read the name that is asked for, and where it ends."""
    labels, at = [], 12
    while size := data[at]:
        labels.append(data[at + 1 : at + 1 + size].decode().lower())
        at += 1 + size
    return ".".join(labels), at + 1


async def main(folder: Path) -> None:
    """Serve both until killed."""

    async def forward(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        outside = await asyncio.open_unix_connection(str(folder / OUTSIDE))
        await join((reader, writer), outside)

    server = await asyncio.start_server(forward, API_ADDRESS, 443)
    await asyncio.get_running_loop().create_datagram_endpoint(
        lambda: _Datagrams(Names(folder)), local_addr=(DNS_ADDRESS, 53)
    )
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
