"""The first solution by asking what is feasible."""

from __future__ import annotations

import pytest

from contracts.gang import MemberClaim
from moorings.upstream.probe import first_solution, may_meet_errors
from solver.engines import cpsat
from solver.errors import StepsSpentError
from tests.builders import (
    DRIVER,
    constraint,
    device,
    devices,
    member_claim,
    request,
    sub_request,
)
from tests.builders.upstream import PodAtNode, pod_at_node

ON_RAIL = constraint(f"{DRIVER}/rail")


def may_fail(pod: PodAtNode) -> bool:
    """Whether a search for this pod could abort."""
    return may_meet_errors(pod.world, pod.requests(), pod.state().constraints)


@pytest.mark.parametrize(
    "claim",
    [
        member_claim(request(count=2)),
        member_claim(request("a"), request("b", count=2), constraints=[ON_RAIL]),
        member_claim(
            request(
                "a",
                first_available=[
                    sub_request("many", count=6),
                    sub_request("few", count=2),
                ],
            ),
            request("b"),
        ),
        member_claim(request("a", mode="All")),
    ],
)
def test_a_probe_chooses_what_the_search_chooses(claim: MemberClaim) -> None:
    """Alternative by alternative, device by device."""
    content = [device(f"d{i}", attributes={"rail": "xyyzzz"[i]}) for i in range(6)]
    pod = pod_at_node(content, claim)
    search = pod.search()
    assert search.run()
    solution = first_solution(pod.problem, pod.world, pod.member)
    assert solution == (search.chosen[0], search.devices[0])


def test_what_has_no_solution_is_told_as_such() -> None:
    """By a proof, not by a search that ends."""
    pod = pod_at_node(devices(2), member_claim(request(count=3)))
    assert first_solution(pod.problem, pod.world, pod.member) is None


def test_a_probe_without_an_answer_gives_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is not proven is neither a solution nor the lack of one."""
    monkeypatch.setattr(
        cpsat, "solve", lambda *_, **__: cpsat.Unknown(work=1.0, bound=0.0)
    )
    pod = pod_at_node(devices(2), member_claim(request()))
    with pytest.raises(StepsSpentError):
        first_solution(pod.problem, pod.world, pod.member)


def test_a_probe_must_not_hide_an_error_that_the_search_would_meet() -> None:
    """A selector that fails somewhere, or a list while lists are off."""
    chosen = f'device.attributes["{DRIVER}"].model == "x"'
    failing = member_claim(request(select=[chosen]))
    assert may_fail(pod_at_node(devices(2), failing))
    assert not may_fail(pod_at_node(devices(2, attributes={"model": "x"}), failing))
    matching = member_claim(request(count=2), constraints=[ON_RAIL])
    lists = devices(2, attributes={"rail": ["x", "y"]})
    assert may_fail(pod_at_node(lists, matching))
    assert not may_fail(pod_at_node(lists, matching, list_type_attributes=True))
