"""The Go programs of tests/oracles/upstream; must not know what they answer."""

from __future__ import annotations

from pathlib import Path

from tests.lab import go_program

SOURCES = Path(__file__).parent / "upstream"
_TESTS = {"table": ("test", "-c", "-vet=off")}


def built(name: str) -> Path | None:
    """Give the `oracle`, `table` or `bench` program; see `go_program.built`."""
    return go_program.built(SOURCES, name, *_TESTS.get(name, ()))
