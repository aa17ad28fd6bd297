"""Which devices need not be tried because another one failed."""

from __future__ import annotations

from collections.abc import Sequence

from contracts.device import Device
from contracts.gang import MemberClaim
from moorings.upstream.state import State
from moorings.upstream.symmetry import Symmetry
from moorings.upstream.world import RequestData
from tests.builders import DRIVER, constraint, device, devices, member_claim, request
from tests.builders.upstream import pod_at_node

ON_RAIL = constraint(f"{DRIVER}/rail")


def begin(
    content: Sequence[Device], *claims: MemberClaim
) -> tuple[Symmetry, State, RequestData]:
    """Begin with nothing given out; returns the first request, too."""
    pod = pod_at_node(content, *claims)
    state, requests = pod.state(), pod.requests()
    return Symmetry(pod.world, state, requests), state, requests[0][0][0]


def are_alike(symmetry: Symmetry, one: int, other: int) -> bool:
    """Whether two devices have a key in common."""
    return not set(symmetry.keys_of(one)).isdisjoint(symmetry.keys_of(other))


def test_devices_that_nobody_tells_apart_are_interchangeable() -> None:
    """Names and what no request reads do not matter."""
    content = [device(f"d{i}", attributes={"serial": i}) for i in range(2)]
    symmetry, _, _ = begin(content)
    assert are_alike(symmetry, 0, 1)


def test_what_a_selector_or_a_counter_tells_apart_is_not() -> None:
    """Nor what some constraint compares."""
    chosen = f'device.attributes["{DRIVER}"].model == "x"'
    models = [device(f"d{i}", attributes={"model": "xyx"[i]}) for i in range(3)]
    symmetry, _, _ = begin(models, member_claim(request(select=[chosen])))
    assert not are_alike(symmetry, 0, 1)
    assert are_alike(symmetry, 0, 2)


def test_values_with_equal_devices_are_interchangeable_as_a_whole() -> None:
    """Two rails of two devices are; one of one device is another thing."""
    content = [device(f"d{i}", attributes={"rail": "xxyyz"[i]}) for i in range(5)]
    claim = member_claim(request(count=2), constraints=[ON_RAIL])
    symmetry, _, _ = begin(content, claim)
    assert are_alike(symmetry, 0, 1)
    assert are_alike(symmetry, 0, 2)
    assert not are_alike(symmetry, 0, 4)


def test_a_value_that_is_chosen_already_is_no_other_values_equal() -> None:
    """Once a device of a rail is given out, the rail is not exchanged."""
    content = [device(f"d{i}", attributes={"rail": "xxxyyy"[i]}) for i in range(6)]
    claim = member_claim(request(count=2), constraints=[ON_RAIL])
    symmetry, state, asking = begin(content, claim)
    undo = state.take(asking, 0, must=False)
    assert undo is not None
    assert are_alike(symmetry, 1, 2)
    assert not are_alike(symmetry, 1, 3)
    state.give_back(asking, undo)
    assert are_alike(symmetry, 1, 3)


def test_a_device_with_a_share_given_out_is_not_like_one_without() -> None:
    """What is left of it differs."""
    content = devices(2, allow_multiple_allocations=True, capacity={"memory": 10})
    claim = member_claim(request(count=2, capacity={"memory": 4}))
    symmetry, state, asking = begin(content, claim)
    assert are_alike(symmetry, 0, 1)
    assert state.take(asking, 0, must=False) is not None
    assert not are_alike(symmetry, 0, 1)
