"""An API server that is away, slow or strange is one that gives no answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import yaml

from authcallout.errors import ReviewError
from authcallout.grants import AccessQuestion
from authcallout.login import Identity
from authcallout.reviews import Reviews
from moorings.local.process import find_free_port
from runtime.errors import ConfigError

TIMEOUT_S = 0.5


@asynccontextmanager
async def reviews_of(folder: Path, port: int) -> AsyncIterator[Reviews]:
    """Open reviews by the API server at a port of this machine."""
    file, server = folder / "kubeconfig", f"http://127.0.0.1:{port}"
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
    }
    file.write_text(yaml.safe_dump(config))
    async with Reviews.open(str(file), 4, TIMEOUT_S) as reviews:
        yield reviews


@asynccontextmanager
async def answering(answer: bytes | None) -> AsyncIterator[int]:
    """Answer every request with these bytes, or never; gives the port."""
    over = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        if answer is None:
            await over.wait()
        else:
            writer.write(answer)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]
        over.set()


def http(status: str, body: bytes) -> bytes:
    """Make an answer of HTTP."""
    head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


async def test_an_api_server_that_is_away_is_no_answer(tmp_path: Path) -> None:
    async with reviews_of(tmp_path, find_free_port()) as reviews:
        with pytest.raises(ReviewError, match="TokenReview: no answer"):
            await reviews.review("token", "audience")
        with pytest.raises(ReviewError, match="SubjectAccessReview: no answer"):
            await reviews.may(Identity(username="x"), AccessQuestion("create", "a"))


@pytest.mark.parametrize(
    "answer",
    [
        None,
        b"",
        b"no HTTP\r\n\r\n",
        http("403 Forbidden", b"{}"),
        http("429 Too Many Requests", b"{}"),
        http("500 Internal Server Error", b"{}"),
        http("201 Created", b"no JSON"),
    ],
)
async def test_what_is_no_review_is_no_answer(
    tmp_path: Path, answer: bytes | None
) -> None:
    async with answering(answer) as port, reviews_of(tmp_path, port) as reviews:
        with pytest.raises(ReviewError):
            await reviews.review("secret-token", "audience")


@pytest.mark.parametrize(
    "body", [b"{}", b"[]", b'{"status": null}', b'{"status": {"allowed": "yes"}}']
)
async def test_a_review_without_a_yes_is_a_no(tmp_path: Path, body: bytes) -> None:
    async with (
        answering(http("201 Created", body)) as port,
        reviews_of(tmp_path, port) as reviews,
    ):
        question = AccessQuestion("create", "a")
        assert not await reviews.may(Identity(username="x"), question)


async def test_a_denied_review_is_a_no(tmp_path: Path) -> None:
    body = b'{"status": {"allowed": true, "denied": true}}'
    async with (
        answering(http("201 Created", body)) as port,
        reviews_of(tmp_path, port) as reviews,
    ):
        question = AccessQuestion("create", "a")
        assert not await reviews.may(Identity(username="x"), question)


async def test_an_error_does_not_tell_the_token(tmp_path: Path) -> None:
    answer = http("500 Internal Server Error", b'{"message": "secret-token"}')
    async with answering(answer) as port, reviews_of(tmp_path, port) as reviews:
        with pytest.raises(ReviewError) as failed:
            await reviews.review("secret-token", "audience")
    assert "secret-token" not in str(failed.value)


async def test_a_kubeconfig_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="AUTHCALLOUT_KUBECONFIG"):
        async with Reviews.open(str(tmp_path / "nowhere"), 4, TIMEOUT_S):
            pass
