"""The Go programs of tests/oracles/upstream; must not know what they answer."""

from __future__ import annotations

from pathlib import Path

from tests.lab import go_program

SOURCES = Path(__file__).parent / "upstream"
_TESTS = {"table": ("test", "-c", "-vet=off")}


def built(name: str) -> Path | None:
    """Give the `oracle`, `table` or `bench` program; see `go_program.built`."""
    return go_program.built(SOURCES, name, *_TESTS.get(name, ()))


def built_138() -> Path | None:
    """Give the `oracle` program with the allocator of Kubernetes 1.38.

    It is built from a pre-release, with a Go that is fetched for it.
    """
    how = ("build", "-modfile=go138.mod", "-tags=kubernetes138")
    toolchain = "go1.27.3"
    return go_program.built(
        SOURCES, "oracle", *how, name="oracle138", toolchain=toolchain
    )
