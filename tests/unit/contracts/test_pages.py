"""Pages come back as they were written, whatever is in their messages."""

from __future__ import annotations

import pytest

from contracts.pages import PageHead, PageMessage, read_page, write_page

BODIES = [b'{"a":1}', b"", b"\n\xff\0 no JSON", b"[" * 2_000]
PAGE = PageHead(
    messages=tuple(
        PageMessage(
            sequence=7 + n,
            subject=f"dec.v1.c.n.{n}",
            time="2026-01-02T03:04:05.6Z",
            bytes=len(body),
            headers={"traceparent": "a\nb"} if n else {},
        )
        for n, body in enumerate(BODIES)
    ),
    pending=3,
)


def test_a_page_comes_back_to_the_byte() -> None:
    assert read_page(write_page(PAGE, BODIES)) == (PAGE, BODIES)


def test_a_page_may_be_empty() -> None:
    empty = PageHead(pending=0)
    assert read_page(write_page(empty, [])) == (empty, [])


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{}",
        b'{"messages":[],"pending":0}\nmore',
        write_page(PAGE, BODIES)[:-1],
        write_page(PAGE, BODIES)[1:],
        b'{"pending":0,"messages":[{"sequence":1,"subject":"a","time":"","bytes":-1}]}\n',
    ],
)
def test_what_is_no_page_or_not_whole_is_not_read(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        read_page(data)
