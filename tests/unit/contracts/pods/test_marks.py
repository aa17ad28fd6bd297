"""What looks like a mark of ours and is none is told from what others write."""

from __future__ import annotations

from contracts.names import GATE
from contracts.pods.marks import find_unknown_mark, list_unknown_gates
from contracts.workload import PodSchedulingGate, PodSpec
from tests.builders import pod


def test_a_misspelt_mark_is_found() -> None:
    """By its place, and with what was most likely meant."""
    marked = pod(annotations={"moorings.dev/topolgy": "[]", "example.com/x": "1"})
    assert find_unknown_mark(marked) == (
        "annotation moorings.dev/topolgy is unknown; did you mean "
        "moorings.dev/topology?"
    )
    assert find_unknown_mark(pod(labels={"moorings.dev/qqqqqqqq": "1"})) == (
        "label moorings.dev/qqqqqqqq is unknown"
    )
    known = pod(
        labels={"moorings.dev/gang": "train"},
        annotations={"moorings.dev/gang-size": "3"},
    )
    assert find_unknown_mark(known) is None


def test_a_gate_in_our_name_is_ours_or_nobodys() -> None:
    """Also where the domain is misspelt."""
    names = (
        "example.com/gate",
        "moorings.dev/alocation",
        GATE,
        "mooring.dev/allocation",
        "moorings.example/allocation",
    )
    gates = tuple(PodSchedulingGate(name=name) for name in names)
    found = list(list_unknown_gates(PodSpec(scheduling_gates=gates)))
    assert [index for index, _ in found] == [1, 3]
    assert found[1][1] == (
        f"nobody opens the gate mooring.dev/allocation; did you mean {GATE}?"
    )
