"""A real browser that looks at the web console, and the console for it."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest
from msgspec import Struct
from playwright.async_api import Browser, async_playwright

from tests.lab.command_line import MAIN

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
_ARGUMENTS = ("--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage")
"""Tests run as root in containers, where Chromium's own sandbox cannot start."""


class ConsoleLinks(Struct, frozen=True):
    """What a console printed: who has a link may look, or change gangs."""

    look: str
    change: str

    @property
    def address(self) -> str:
        """The console without a token."""
        return self.look.partition("#")[0]

    def token(self, link: str) -> str:
        """The token of one of its links."""
        return link.partition("#token=")[2]


def find_browser() -> str:
    """Find a Chromium; without one the test is skipped."""
    found = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if found is None:
        pytest.skip("no Chromium (Debian's package `chromium`)")
    return found


@contextmanager
def console_up(home: Path, *options: str) -> Iterator[ConsoleLinks]:
    """Run `moorings console` beside the stack of a state home."""
    process = subprocess.Popen(
        [*MAIN, "console", "--port", "0", "--allow-changes", *options],
        env={**os.environ, "XDG_STATE_HOME": str(home)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(2)]
        links = [re.search(r"http://\S+", line) for line in lines]
        assert all(links), lines
        yield ConsoleLinks(*(link[0] for link in links if link is not None))
    finally:
        process.send_signal(signal.SIGINT)
        rest, _ = process.communicate(timeout=180)
        assert process.returncode == 0, rest


@asynccontextmanager
async def browser_up() -> AsyncIterator[Browser]:
    """Run a headless browser."""
    program = find_browser()
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=program, args=list(_ARGUMENTS)
        )
        try:
            yield browser
        finally:
            await browser.close()
