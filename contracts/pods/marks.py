"""Labels, annotations and gates of ours that mean nothing: most likely misspelt. Pure.

A rule that nobody reads is worse than one that is refused: the gang runs without it.
"""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches

from contracts import names
from contracts.names import GANG, GATE, OURS
from contracts.workload import Pod, PodSpec

UNGATED = (
    f"have the label {GANG} but not the gate {GATE}: kube-scheduler binds them one by "
    "one"
)
"""What is wrong with pods that are in a gang and do not wait for it."""
_NEAR = 0.9
"""How alike a domain is to ours, of 1, if it is most likely ours misspelt."""
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
    """Yield the unknown scheduling gates in our name, or nearly so, by index."""
    for index, gate in enumerate(spec.scheduling_gates):
        if gate.name != GATE and _is_nearly_ours(gate.name):
            yield index, f"nobody opens the gate {gate.name}; did you mean {GATE}?"


def _is_nearly_ours(name: str) -> bool:
    domain = name.partition("/")[0]
    return bool(get_close_matches(domain, [OURS.rstrip("/")], cutoff=_NEAR))


def _suggest_key(key: str) -> str:
    known = sorted(name.removeprefix(OURS) for name in _KNOWN)
    near = get_close_matches(key.removeprefix(OURS), known, n=1)
    return f"; did you mean {OURS}{near[0]}?" if near else ""
