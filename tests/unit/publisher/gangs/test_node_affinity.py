"""What pods ask of their nodes is narrowed, never loosened."""

from __future__ import annotations

from publisher.gangs.node_affinity import narrow_affinity
from tests import builders


def test_an_affinity_is_narrowed_in_each_of_its_terms_and_once() -> None:
    """Terms are alternatives: what must hold must hold in all of them."""
    rack = {"key": "rack", "operator": "In", "values": ["r1"]}
    zone = {"key": "zone", "operator": "In", "values": ["z1"]}
    terms = [{"matchExpressions": [rack]}, {"matchExpressions": [zone]}]
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    affinity = {"nodeAffinity": {required: {"nodeSelectorTerms": terms}}, "other": 1}
    selector = builders.node_name_selector("node-7")
    narrowed = narrow_affinity(affinity, selector)
    got = narrowed["nodeAffinity"][required]["nodeSelectorTerms"]
    assert [term["matchExpressions"] for term in got] == [[rack], [zone]]
    assert [term["matchFields"][0]["values"] for term in got] == [["node-7"]] * 2
    assert narrowed["other"] == 1
    assert narrow_affinity(narrowed, selector) == narrowed
