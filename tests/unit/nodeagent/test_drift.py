"""What runs on a node beside what was decided, in every combination."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from contracts.ids import (
    ClaimRef,
    ClaimUID,
    DeviceID,
    DeviceName,
    DriverName,
    Namespace,
    PoolName,
)
from nodeagent.drift import (
    ClaimOnRecord,
    DeviceInUse,
    Drift,
    DriftKind,
    DriftWatch,
    NodeSight,
    find_drift,
)

NAMES = ("a", "b", "c")


def device(name: str) -> DeviceID:
    """Name a device of our driver."""
    return DeviceID(DriverName("gpu.example.com"), PoolName("n1"), DeviceName(name))


def claim(name: str, uid: str = "") -> ClaimRef:
    """Name a claim."""
    return ClaimRef(Namespace("team"), name, ClaimUID(uid))


def use(name: str, held: str) -> DeviceInUse:
    """Say that the pod of a claim holds a device."""
    return DeviceInUse(f"team/{name}", claim(name), device(held))


def told(sight: NodeSight) -> list[tuple[DriftKind, str]]:
    """Give the kinds that are found, each with its claim."""
    return [(drift.kind, drift.claim) for drift in sorted(find_drift(sight))]


def agreed(*names: str) -> NodeSight:
    """Make a node on which everything is as decided: each claim one device."""
    return NodeSight(
        in_use=frozenset(use(name, name) for name in names),
        prepared={claim(n, f"uid-{n}"): frozenset({device(n)}) for n in names},
        claims={
            claim(n): ClaimOnRecord(ClaimUID(f"uid-{n}"), frozenset({device(n)}))
            for n in names
        },
    )


@given(st.sets(st.sampled_from(NAMES)), st.sets(st.sampled_from(NAMES)))
def test_where_all_three_agree_nothing_drifts(names: set[str], idle: set[str]) -> None:
    """Also where a claim is prepared and its container has ended, or not begun."""
    sight = agreed(*names)
    ended = frozenset(u for u in sight.in_use if u.claim.name not in idle)
    assert (
        told(NodeSight(in_use=ended, prepared=sight.prepared, claims=sight.claims))
        == []
    )


@given(
    st.sets(st.sampled_from(NAMES)),
    st.sets(st.sampled_from(NAMES)),
    st.sets(st.sampled_from(NAMES)),
)
def test_each_difference_is_found_and_no_other(
    used: set[str], prepared: set[str], allocated: set[str]
) -> None:
    """Whatever is used, prepared and allocated, one device a claim."""
    whole = agreed(*NAMES)
    sight = NodeSight(
        in_use=frozenset(u for u in whole.in_use if u.claim.name in used),
        prepared={c: d for c, d in whole.prepared.items() if c.name in prepared},
        claims={c: r if c.name in allocated else None for c, r in whole.claims.items()},
    )
    assert {(kind, name.removeprefix("team/")) for kind, name in told(sight)} == {
        *((DriftKind.NOT_ALLOCATED, name) for name in used - allocated),
        *((DriftKind.NOT_PREPARED, name) for name in used - prepared),
        *((DriftKind.CLAIM_GONE, name) for name in prepared - allocated),
    }


def test_another_claim_of_the_name_is_not_the_one_that_was_prepared() -> None:
    """Nor is one that was freed and has other devices by now."""
    sight = agreed("a")
    other = {claim("a"): ClaimOnRecord(ClaimUID("later"), frozenset({device("a")}))}
    found = told(NodeSight(prepared=sight.prepared, claims=other))
    assert found == [(DriftKind.CLAIM_GONE, "team/a")]
    moved = {claim("a"): ClaimOnRecord(ClaimUID("uid-a"), frozenset({device("b")}))}
    found = told(NodeSight(in_use=sight.in_use, prepared=sight.prepared, claims=moved))
    assert found == [(DriftKind.NOT_ALLOCATED, "team/a")]


def test_of_a_claim_that_could_not_be_read_nothing_is_said() -> None:
    """What is not known is no difference."""
    sight = agreed("a")
    assert told(NodeSight(in_use=sight.in_use, prepared=sight.prepared)) == []


LOOKS = st.lists(
    st.tuples(st.sampled_from((1.0, 5.0, 30.0)), st.sets(st.sampled_from(NAMES))),
    max_size=12,
)


@given(LOOKS)
def test_what_begins_has_lasted_and_ends_once(
    looks: list[tuple[float, set[str]]],
) -> None:
    """However often it comes and goes: began and ended take turns."""
    watch, now_s, open_, since_s = (
        DriftWatch(10.0),
        0.0,
        set[Drift](),
        dict[str, float](),
    )
    for step_s, gone in looks:
        now_s += step_s
        sight = agreed(*NAMES)
        sight = NodeSight(
            prepared=sight.prepared,
            claims={c: None if c.name in gone else r for c, r in sight.claims.items()},
        )
        since_s = {name: since_s.get(name, now_s) for name in gone}
        began, ended = watch.look(sight, now_s)
        assert open_.isdisjoint(began)
        assert open_.issuperset(ended)
        open_ = (open_ | set(began)) - set(ended)
        lasting = {f"team/{n}" for n, s in since_s.items() if now_s - s >= 10.0}
        assert {drift.claim for drift in open_} == lasting
        assert set(watch.told) == open_
