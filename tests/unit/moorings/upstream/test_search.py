"""The first solution in kube-scheduler's order."""

from __future__ import annotations

import pytest

from moorings.upstream import search as search_module
from moorings.upstream.search import LOOKING, Search
from solver.errors import AbortedError, FatalError, StepsSpentError
from tests.builders import (
    DRIVER,
    constraint,
    device,
    devices,
    member_claim,
    request,
    sub_request,
)
from tests.builders.upstream import pod_at_node

ON_RAIL = constraint(f"{DRIVER}/rail")


def test_devices_are_taken_from_the_first_on() -> None:
    """Request by request, claim by claim."""
    pod = pod_at_node(
        devices(4),
        member_claim(request("a"), request("b", count=2), name="one"),
        member_claim(name="two"),
    )
    search = pod.search()
    assert search.run()
    assert search.devices == [[[0], [1, 2]], [[3]]]


def test_a_choice_that_leads_nowhere_is_undone() -> None:
    """The first device is alone on its rail; the next two are not."""
    content = [device(f"d{i}", attributes={"rail": "xyy"[i]}) for i in range(3)]
    claim = member_claim(request("a"), request("b"), constraints=[ON_RAIL])
    search = pod_at_node(content, claim).search()
    assert search.run()
    assert search.devices == [[[1], [2]]]


def test_alternatives_are_tried_in_their_order() -> None:
    """The first that leaves a solution for all that follows."""
    either = request(
        first_available=[sub_request("many", count=3), sub_request("few", count=2)]
    )
    search = pod_at_node(devices(3), member_claim(either, request("last"))).search()
    assert search.run()
    assert search.chosen == [[1, 0]]
    assert search.devices == [[[0, 1], [2]]]
    assert search.chosen_request(0, 0).part.name == "few"


def test_without_a_solution_nothing_is_given_out() -> None:
    """Another node may be asked."""
    search = pod_at_node(devices(2), member_claim(request(count=3))).search()
    assert not search.run()
    assert search.devices == [[[]]]


def test_a_request_has_each_device_once() -> None:
    """Two shares of one device are not two devices."""
    shared = device(allow_multiple_allocations=True, capacity={"memory": 10})
    pair = member_claim(request(count=2, capacity={"memory": 1}))
    assert not pod_at_node([shared], pair).search().run()
    two = member_claim(*(request(name, capacity={"memory": 1}) for name in "ab"))
    assert pod_at_node([shared], two).search().run()


def test_a_fault_matters_only_if_the_search_meets_it() -> None:
    """Behind the device that serves the request nobody looks."""
    chosen = f'device.attributes["{DRIVER}"].model == "x"'
    claim = member_claim(request(select=[chosen]))
    good, bad = device("good", attributes={"model": "x"}), device("bad")
    assert pod_at_node([good, bad], claim).search().run()
    with pytest.raises(FatalError, match="no such key: model"):
        pod_at_node([bad, good], claim).search().run()


def test_a_search_ends_when_the_callers_time_is_over() -> None:
    """It looks at the clock first, and every so many choices."""
    pod = pod_at_node(devices(2 * LOOKING), member_claim(request(count=1)))
    over = Search(pod.problem, pod.world, pod.member, lambda: True)
    with pytest.raises(AbortedError):
        over.run()


def test_a_search_gives_up_after_so_many_choices(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Rather than never to end."""
    monkeypatch.setattr(search_module, "STEPS", 5)
    pod = pod_at_node(devices(9), member_claim(request(count=9)))
    with pytest.raises(StepsSpentError):
        pod.search().run()


def test_probes_find_what_the_plain_search_finds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where it takes long, and no error can be met on the way."""
    content = [device(f"d{i}", attributes={"rail": "xyyzzz"[i]}) for i in range(6)]
    claim = member_claim(request("a"), request("b", count=2), constraints=[ON_RAIL])
    plain = pod_at_node(content, claim).search()
    monkeypatch.setattr(search_module, "PROBING", 2)
    probing = pod_at_node(content, claim).search()
    assert plain.run()
    assert probing.run()
    assert plain.devices == probing.devices == [[[3], [4, 5]]]
