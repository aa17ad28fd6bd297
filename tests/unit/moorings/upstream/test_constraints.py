"""The constraints of a claim while devices are added and taken back."""

from __future__ import annotations

from contracts.device import Device
from contracts.ids import FullyQualifiedName
from moorings.upstream.constraints import Constraint
from moorings.upstream.world import RequestData
from tests.builders import DRIVER, Value, constraint, device, member_claim, request
from tests.builders.upstream import PodAtNode, pod_at_node

RAIL = f"{DRIVER}/rail"


def on_rails(*rails: Value | None) -> list[Device]:
    """Make a device on each of these rails; None: on none."""
    return [
        device(f"d{i}", attributes={} if rail is None else {"rail": rail})
        for i, rail in enumerate(rails)
    ]


def constrained(
    content: list[Device], *, distinct: bool = False, lists: bool = False
) -> tuple[PodAtNode, Constraint, RequestData, RequestData]:
    """Constrain request `a` alone; returns it and request `b` too."""
    rule = constraint(
        None if distinct else RAIL, "a", distinct=RAIL if distinct else None
    )
    claim = member_claim(request("a"), request("b"), constraints=[rule])
    pod = pod_at_node(content, claim, list_type_attributes=lists)
    (((a,), (b,)),) = pod.requests()
    return pod, Constraint(pod.world, pod.claims[0].constraints[0]), a, b


def test_matching_devices_have_the_value_of_the_first() -> None:
    """One without the attribute never matches."""
    _, rule, a, _ = constrained(on_rails("x", "y", None, "x"))
    assert [rule.add(a, index) for index in range(4)] == [True, False, False, True]


def test_distinct_devices_have_each_another_value() -> None:
    """One without the attribute is not distinct from any."""
    _, rule, a, _ = constrained(on_rails("x", "y", None, "y"), distinct=True)
    assert [rule.add(a, index) for index in range(4)] == [True, True, False, False]


def test_what_is_taken_back_binds_nobody() -> None:
    """The last one first."""
    _, rule, a, _ = constrained(on_rails("x", "y"))
    assert rule.add(a, 0)
    assert not rule.add(a, 1)
    rule.remove(a)
    assert rule.add(a, 1)


def test_requests_out_of_scope_may_have_any_device() -> None:
    """And what they take says nothing to those in the scope."""
    _, rule, a, b = constrained(on_rails("x", "y"))
    assert (rule.concerns(a), rule.concerns(b)) == (True, False)
    assert rule.add(b, 0)
    assert rule.add(a, 1)
    rule.remove(b)
    assert not rule.add(a, 0)


def test_lists_match_while_one_value_is_common_to_all() -> None:
    """Not to each pair: x is gone after the second."""
    content = on_rails(["x", "y"], ["y", "z"], ["x", "z"], ["y"])
    _, rule, a, _ = constrained(content, lists=True)
    assert [rule.add(a, index) for index in range(4)] == [True, True, False, True]
    rule.remove(a)
    rule.remove(a)
    assert rule.add(a, 2)


def test_while_lists_are_off_a_list_has_no_value() -> None:
    """It neither matches nor differs."""
    for distinct in (False, True):
        _, rule, a, _ = constrained(on_rails("x", ["x"]), distinct=distinct)
        assert rule.add(a, 0)
        assert not rule.add(a, 1)


def test_the_attribute_is_that_of_the_drivers_domain() -> None:
    """A bare name is one of the driver's own."""
    pod, rule, a, _ = constrained(on_rails("x"))
    attribute = rule.attribute_of(a, 0)
    assert attribute is not None
    assert attribute.string_value == "x"
    assert rule.name == FullyQualifiedName(RAIL)
    assert pod.world.devices[0].device.attributes.keys() == {"rail"}
