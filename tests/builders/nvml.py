"""Records of NVML that are played in tests, and sources that read them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from contracts.ids import NodeName
from nodeagent.sources.nvml.recording import Player, read_recording
from nodeagent.sources.nvml.source import NvmlSource
from nodeagent.sources.nvml.spec import NvmlSpec

RECORDED = Path(__file__).parents[1] / "data" / "nvml"
NODE = NodeName("n1")
DRIVER = "gpu.example.com"


def play(name: str) -> Player:
    """Play a record; a wait for events is over at once."""
    text = (RECORDED / f"{name}.json").read_text()
    return Player(read_recording(text), sleep=lambda _: None)


def make_spec(root: Path, **others: Any) -> NvmlSpec:
    """Make settings as the sources file has them; /sys and /proc lie below a folder."""
    written = {"kind": "nvml", "name": "gpus", "driver": DRIVER, **others}
    folders = {"root": str(root / "sys"), "proc": str(root / "proc")}
    return msgspec.convert({**folders, **written}, NvmlSpec)


def open_player(root: Path, player: Player, **others: Any) -> NvmlSource:
    """Open a source of the GPUs of a record."""
    return NvmlSource(make_spec(root, **others), NODE, lambda: player)
