"""Labels, annotations and gates of ours that mean nothing: most likely misspelt. Pure.

A rule that nobody reads is worse than one that is refused: the gang runs without it.
"""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches

from contracts import names
from contracts.names import GANG, GANG_SIZE, GATE, OURS
from contracts.workload import Pod, PodSpec

UNGATED = (
    f"have the label {GANG} but not the gate {GATE}: kube-scheduler binds them one by "
    "one"
)
"""What is wrong with pods that are in a gang and do not wait for it."""
_NEAR = 0.9
"""How alike a domain is to ours, of 1, if it is most likely ours misspelt."""
_DOMAIN = OURS.rstrip("/")
_HOST = _DOMAIN.partition(".")[0]
KNOWN_MARKS = frozenset(
    value
    for value in vars(names).values()
    if isinstance(value, str)
    and value.startswith(OURS)
    and value not in (OURS, names.API_VERSION)
)
"""What is known in our name."""
_ONLY_OURS = tuple(mark.removeprefix(OURS) for mark in (GANG, GANG_SIZE))
"""Names that say whom they are for, even where the rest of the domain is another."""


def find_unknown_mark(pod: Pod) -> str | None:
    """Describe the first unknown label or annotation in our name, or nearly so.

    None: there is none. Projects may have a domain that is like ours: of these only
    what is named like a mark of ours counts.
    """
    for what, keys in (
        ("label", pod.metadata.labels),
        ("annotation", pod.metadata.annotations),
    ):
        unknown = [key for key in keys if _is_unknown(key)]
        if unknown:
            return f"{what} {min(unknown)} is unknown{_suggest_key(min(unknown))}"
    return None


def list_unknown_gates(spec: PodSpec) -> Iterator[tuple[int, str]]:
    """Yield the unknown scheduling gates in our name, or nearly so, by index."""
    for index, gate in enumerate(spec.scheduling_gates):
        if gate.name != GATE and _is_nearly_ours(gate.name):
            yield index, f"nobody opens the gate {gate.name}; did you mean {GATE}?"


def _is_unknown(key: str) -> bool:
    if key in KNOWN_MARKS or not _is_nearly_ours(key):
        return False
    return key.startswith(OURS) or bool(_suggest_key(key))


def _is_nearly_ours(key: str) -> bool:
    domain, _, name = key.partition("/")
    if name in _ONLY_OURS and _is_near(domain.partition(".")[0], _HOST):
        return True
    return _is_near(domain, _DOMAIN)


def _is_near(word: str, meant: str) -> bool:
    """True if a word is most likely another, misspelt."""
    # Most domains are told apart by their lengths, and pods have many.
    shared = min(len(word), len(meant))
    if 2 * shared < _NEAR * (len(word) + len(meant)):
        return False
    return bool(get_close_matches(word, [meant], cutoff=_NEAR))


def _suggest_key(key: str) -> str:
    known = sorted(mark.removeprefix(OURS) for mark in KNOWN_MARKS)
    near = get_close_matches(key.partition("/")[2], known, n=1)
    return f"; did you mean {OURS}{near[0]}?" if near else ""
