"""Recorded solves: what is stored before and after, and how it is read back.

A Problem is stored as its root and the pages that the root names, each under its own
hash, so a solve adds the root and what changed. An export is the same in one file.
Knows no bus (the service stores and fetches the blobs) and no engine (`replay.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import sha256

import zstandard
from msgspec import Struct

from contracts.codec import Codec
from contracts.errors import DecodeError
from contracts.solves import SolveDecided, SolveOpened
from solver.errors import RecordError
from solver.problem.problem import ROOT, Problem
from solver.selectors.table import SelectorTable
from solver.snapshot.pages import NodeParts, Page
from solver.snapshot.parts import Part

MAX_EXPORT_BYTES = 1 << 30


def sha_of(data: bytes) -> str:
    """Hash bytes, in hex: the name of their blob."""
    return sha256(data).hexdigest()


class PartCache:
    """Pages and parts of the last Problem: of the next, only what changed is read."""

    def __init__(self) -> None:
        self._pages: dict[str, Page] = {}
        self._parts: dict[bytes, Part] = {}
        self._nodes: dict[str, NodeParts] = {}

    def problem(self, root: bytes, pages: Mapping[str, bytes]) -> Problem:
        """Put a Problem together from its root and the pages that are not here yet.

        Afterwards only the pages of this Problem are kept.

        Raises:
            DecodeError: bytes that are no root or no page.
            RecordError: a page is neither given nor here.
        """
        problem_root = ROOT.decode(root)
        pages_by_sha: dict[str, Page] = {}
        for sha in problem_root.pages:
            page = self._pages.get(sha)
            if page is None:
                data = pages.get(sha)
                if data is None:
                    raise RecordError(sha_of(root)[:16], f"page {sha[:16]} is missing")
                page = Page.decode(data, self._parts, self._nodes)
            pages_by_sha[sha] = page
        self._keep_pages(pages_by_sha)
        table = SelectorTable.of_rows(problem_root.selectors)
        return Problem(
            tuple(pages_by_sha.values()),
            problem_root.gangs,
            table,
            problem_root.parameters,
            problem_root.expected,
            neighbours=problem_root.neighbours,
            quotas=problem_root.quotas,
        )

    def _keep_pages(self, pages: dict[str, Page]) -> None:
        """Keep these pages and no others; costs what came and what went, not all."""
        dropped = _nodes_of(self._pages, self._pages.keys() - pages.keys())
        added = _nodes_of(pages, pages.keys() - self._pages.keys())
        # A node whose page changed around it is dropped and added at once: it stays.
        for owner, node in dropped.items():
            if added.get(owner) is not node:
                self._nodes.pop(owner, None)
                for part in node.parts.values():
                    self._parts.pop(part.data, None)
        for owner, node in added.items():
            if dropped.get(owner) is not node:
                self._nodes[owner] = node
                self._parts.update((part.data, part) for part in node.parts.values())
        self._pages = pages


def _nodes_of(pages: Mapping[str, Page], shas: Iterable[str]) -> dict[str, NodeParts]:
    """Put the nodes of some pages together, by owner."""
    nodes: dict[str, NodeParts] = {}
    for sha in shas:
        nodes.update(pages[sha].nodes)
    return nodes


class Recorded(Struct, frozen=True, kw_only=True):
    """A recorded solve with everything that is needed to solve it again."""

    opened: SolveOpened
    decided: SolveDecided | None = None
    """None: it has no answer yet."""
    root: bytes
    pages: dict[str, bytes]
    decision: bytes = b""

    def problem(self) -> Problem:
        """Put the Problem together again.

        Raises:
            RecordError: a byte is not as it was recorded.
        """
        solve = self.opened.solve
        if sha_of(self.root) != self.opened.problem:
            raise RecordError(solve, "the recorded problem was changed")
        for sha, data in self.pages.items():
            if sha_of(data) != sha:
                raise RecordError(solve, f"page {sha[:16]} was changed")
        if self.decided is not None and sha_of(self.decision) != self.decided.decision:
            raise RecordError(solve, "the recorded decision was changed")
        try:
            return PartCache().problem(self.root, self.pages)
        except DecodeError as error:
            raise RecordError(solve, str(error)) from error


_EXPORT: Codec[Recorded] = Codec(Recorded, "export")
MAGIC = b"moorings-solve-1\n"


def dump_export(recorded: Recorded) -> bytes:
    """Write a recorded solve as one file."""
    packed = zstandard.ZstdCompressor(level=9).compress(_EXPORT.encode(recorded))
    return MAGIC + packed


def load_export(data: bytes) -> Recorded:
    """Read one file back.

    Raises:
        RecordError: it is no export, or damaged.
    """
    if not data.startswith(MAGIC):
        raise RecordError("file", "this is no exported solve")
    try:
        plain = zstandard.ZstdDecompressor().decompress(
            data[len(MAGIC) :], max_output_size=MAX_EXPORT_BYTES
        )
        return _EXPORT.decode(plain)
    except (zstandard.ZstdError, DecodeError) as error:
        raise RecordError("file", f"damaged: {error}") from error
