"""Labels, annotations and gates of ours that mean nothing: most likely misspelt. Pure.

A rule that nobody reads is worse than one that is refused: the gang runs without it.
"""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches

from contracts import names
from contracts.names import GATE, OURS
from contracts.workload import Pod, PodSpec

_KNOWN = frozenset(
    value
    for value in vars(names).values()
    if isinstance(value, str) and value.startswith(OURS) and value != OURS
)


def find_unknown_mark(pod: Pod) -> str | None:
    """Describe the first unknown label or annotation in our name; None: none."""
    for what, keys in (
        ("label", pod.metadata.labels),
        ("annotation", pod.metadata.annotations),
    ):
        unknown = [key for key in keys if key.startswith(OURS) and key not in _KNOWN]
        if unknown:
            return f"{what} {min(unknown)} is unknown{_suggest_key(min(unknown))}"
    return None


def list_unknown_gates(spec: PodSpec) -> Iterator[tuple[int, str]]:
    """Yield the unknown scheduling gates in our name, by index."""
    for index, gate in enumerate(spec.scheduling_gates):
        if gate.name.startswith(OURS) and gate.name != GATE:
            yield index, f"nobody opens the gate {gate.name}; did you mean {GATE}?"


def _suggest_key(key: str) -> str:
    known = sorted(name.removeprefix(OURS) for name in _KNOWN)
    near = get_close_matches(key.removeprefix(OURS), known, n=1)
    return f"; did you mean {OURS}{near[0]}?" if near else ""
