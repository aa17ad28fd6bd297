"""The doctor names policies that do not see what is served."""

from __future__ import annotations

from moorings.doctor.check_admission import check_admission
from moorings.doctor.facts import Unread
from tests.builders.doctor import cluster_facts

RULE = {
    "apiGroups": ["resource.k8s.io"],
    "apiVersions": ["v1beta1"],
    "operations": ["CREATE"],
    "resources": ["resourceclaims"],
}
OLD = {
    "kind": "ValidatingAdmissionPolicy",
    "metadata": {"name": "old"},
    "spec": {"matchConstraints": {"resourceRules": [RULE]}},
}


def test_a_policy_that_sees_nothing_is_named_with_a_remedy() -> None:
    (line,) = check_admission(cluster_facts(admission=(OLD,)))
    assert (line.check, line.level) == ("kubernetes.admission", "warn")
    assert line.why.startswith("ValidatingAdmissionPolicy old does not see resource")
    assert line.remedy == "add v1 there, and read its fields"


def test_without_one_all_is_fine() -> None:
    assert [line.level for line in check_admission(cluster_facts())] == ["ok"]


def test_what_cannot_be_read_is_said() -> None:
    facts = cluster_facts(admission=Unread("denied"))
    assert [line.level for line in check_admission(facts)] == ["warn"]
    facts = cluster_facts(served=Unread("denied"))
    assert not list(check_admission(facts))
