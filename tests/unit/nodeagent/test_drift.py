"""What runs on a node beside what was decided, in every combination."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from contracts.drift import MAX_DRIFTS, DriftKind
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
    ClaimWanted,
    DeviceInUse,
    Drift,
    DriftWatch,
    NodeSight,
    find_drift,
    find_settled,
)
from nodeagent.health import Moment

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
        wanted=frozenset(ClaimWanted(f"team/{name}", claim(name)) for name in names),
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
    st.sets(st.sampled_from(NAMES)),
)
def test_each_difference_is_found_and_no_other(
    used: set[str], wanted: set[str], prepared: set[str], allocated: set[str]
) -> None:
    """Whatever is used, wanted, prepared and allocated, one device a claim."""
    whole = agreed(*NAMES)
    sight = NodeSight(
        in_use=frozenset(u for u in whole.in_use if u.claim.name in used),
        wanted=frozenset(w for w in whole.wanted if w.claim.name in wanted | used),
        prepared={c: d for c, d in whole.prepared.items() if c.name in prepared},
        claims={c: r if c.name in allocated else None for c, r in whole.claims.items()},
    )
    assert {(kind, name.removeprefix("team/")) for kind, name in told(sight)} == {
        *((DriftKind.NOT_ALLOCATED, name) for name in used - allocated),
        *((DriftKind.NOT_PREPARED, name) for name in used - prepared),
        *((DriftKind.CLAIM_GONE, name) for name in prepared - allocated),
        *(
            (DriftKind.NEVER_PREPARED, name)
            for name in (wanted & allocated) - prepared - used
        ),
    }


def test_of_a_claim_of_two_drivers_only_what_lacks_is_missed() -> None:
    """Each device of ours that the claim was given counts by itself."""
    both = ClaimOnRecord(ClaimUID("uid-a"), frozenset({device("a"), device("b")}))
    sight = NodeSight(
        wanted=frozenset({ClaimWanted("team/a", claim("a"))}),
        prepared={claim("a", "uid-a"): frozenset({device("a")})},
        claims={claim("a"): both},
    )
    (drift,) = find_drift(sight)
    assert (drift.kind, drift.device) == (DriftKind.NEVER_PREPARED, device("b"))


def test_settled_is_what_kubelet_and_records_agree_on() -> None:
    """All others are looked up each time."""
    sight = agreed("a", "b", "c")
    in_use = frozenset({use("a", "a"), use("b", "a")})
    found = find_settled(NodeSight(in_use=in_use, prepared=sight.prepared))
    assert found == {claim("a", "uid-a")}


def test_what_is_told_fits_a_message() -> None:
    """However much drifts."""
    names = [f"n{number}" for number in range(MAX_DRIFTS + 1)]
    prepared = {claim(n, n): frozenset({device(n)}) for n in names}
    claims = dict.fromkeys(map(claim, names))
    watch = DriftWatch(0.0)
    watch.look(NodeSight(prepared=prepared, claims=claims), Moment(1.0, "then"))
    assert len(watch.told) == MAX_DRIFTS
    assert {drift.since for drift in watch.told} == {"then"}


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
        began, ended = watch.look(sight, Moment(now_s, ""))
        assert open_.isdisjoint(began)
        assert open_.issuperset(ended)
        open_ = (open_ | set(began)) - set(ended)
        lasting = {f"team/{n}" for n, s in since_s.items() if now_s - s >= 10.0}
        assert {drift.claim for drift in open_} == lasting
        assert [d.claim for d in watch.told] == sorted(d.claim for d in open_)
