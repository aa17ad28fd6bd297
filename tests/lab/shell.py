"""Command blocks of the documents, run by bash as somebody pastes them."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]
_LIMIT_S = 120


def blocks(document: str, heading: str, language: str = "sh") -> list[str]:
    """Read the blocks of commands below a heading, up to the next of its level."""
    text = (ROOT / document).read_text().partition(f"\n{heading}\n")[2]
    assert text, f"{document} has no {heading!r}"
    level = heading.partition(" ")[0]
    section = re.split(rf"\n{level} ", text)[0]
    block = rf"^```(?:{language}){'?' if language == 'sh' else ''}\n(.*?)^```$"
    return re.findall(block, section, re.MULTILINE | re.DOTALL)


async def run(script: str, folder: Path, environment: Mapping[str, str]) -> str:
    """Run a block; no command of it may fail. Gives what it prints."""
    process = await asyncio.create_subprocess_exec(
        "bash",
        "-euo",
        "pipefail",
        "-c",
        script,
        env=environment,
        cwd=folder,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        async with asyncio.timeout(_LIMIT_S):
            told, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
    assert process.returncode == 0, f"{script}\n{told.decode()}"
    return told.decode()
