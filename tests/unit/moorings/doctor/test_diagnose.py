"""Everything together: nothing is said of what is fine, all of what is not."""

from __future__ import annotations

from moorings.doctor.diagnose import diagnose
from moorings.doctor.facts import BusFacts, ClusterFacts, Unread
from tests.builders.doctor import NOW_S, bus_facts, cluster_facts, worst


def test_nothing_is_wrong_with_what_is_fine() -> None:
    """So each other test sees what it changed, and nothing else."""
    result = diagnose(cluster_facts(), bus_facts(), now_s=NOW_S, own_version="0.1.0")
    assert worst(result.checks) == {}
    assert (result.failures, result.warnings) == (0, 0)
    assert len({line.check for line in result.checks}) == len(result.checks)
    assert all(not line.remedy for line in result.checks)


def test_what_cannot_be_reached_fails_and_what_nobody_asked_for_is_silent() -> None:
    result = diagnose(
        Unread("https://api: no answer"), None, now_s=NOW_S, own_version="0.1.0"
    )
    assert [(line.check, line.level) for line in result.checks] == [
        ("kubernetes.reachable", "fail")
    ]
    assert result.failures == 1


def test_nothing_that_could_not_be_read_is_ok() -> None:
    """Every field that may be unread, each by itself."""
    for kind, make in ((ClusterFacts, cluster_facts), (BusFacts, bus_facts)):
        for name in kind.__struct_fields__:
            if "Reading" not in kind.__annotations__[name] or name == "streams":
                continue
            facts = make(**{name: Unread("missing permission")})
            cluster = facts if isinstance(facts, ClusterFacts) else cluster_facts()
            bus = facts if isinstance(facts, BusFacts) else bus_facts()
            result = diagnose(cluster, bus, now_s=NOW_S, own_version="0.1.0")
            found = worst(result.checks)
            assert found, name
            assert all("unknown" in line.why for line in found.values()), name
            assert all(line.remedy for line in found.values()), name
