"""The admission policies name what the services write, and the one who writes it."""

from __future__ import annotations

import re

from contracts.messages import PodRef
from contracts.names import MANAGED
from contracts.pods.marks import KNOWN_MARKS
from publisher.gangs import patches
from publisher.gangs.carry_out.plan_claims import assignments_of, plan_gates
from publisher.gangs.patches import Patch, Purpose
from tests import builders
from tests.builders.decisions import gang_allocated
from tests.builders.plans import NOW, submission_of, view_of
from tests.builders.pods import real_claim, waiting_pod
from tests.lab.manifests import base


def _writes() -> list[Patch]:
    """Make one write of every purpose."""
    pod = waiting_pod("a", gang="train", templates=["gpus"])
    claim = real_claim("c")
    submitted, decision = submission_of([pod]), gang_allocated()
    view = view_of([pod])
    return [
        patches.prepare(claim),
        patches.allocate(
            claim, builders.allocation(), [PodRef(name="a", uid="u")], NOW
        ),
        patches.reserve(claim, []),
        patches.clear(claim),
        patches.withdraw(pod, "uid-gang"),
        *plan_gates(decision, assignments_of(decision, submitted), view),
    ]


def _variable(policy: str, name: str) -> set[str]:
    """Read the list that a variable of a policy splits."""
    (found,) = (
        thing
        for thing in base()
        if thing["kind"] == "ValidatingAdmissionPolicy"
        and thing["metadata"]["name"] == policy
    )
    (expression,) = (
        variable["expression"]
        for variable in found["spec"]["variables"]
        if variable["name"] == name
    )
    listed = re.fullmatch(r"'([^']*)'\.split\(','\)", expression.strip())
    assert listed
    return set(listed[1].split(","))


def test_policies_name_every_annotation_that_the_publisher_writes() -> None:
    """Of pods it may write them, and of pods and claims nobody else may."""
    written: dict[str, set[str]] = {"Pod": set(), "ResourceClaim": set()}
    writes = _writes()
    for patch in writes:
        written[patch.kind] |= set(patch.body["metadata"].get("annotations", ()))

    assert {patch.purpose for patch in writes} == set(Purpose)
    assert _variable("moorings-publisher-pods", "written") == written["Pod"]
    assert written["ResourceClaim"] == {MANAGED}
    assert _variable("moorings-annotations", "names") == written["Pod"] | {MANAGED}


def test_the_policy_of_marks_knows_what_we_know() -> None:
    assert _variable("moorings-marks", "known") == KNOWN_MARKS


def test_policies_mean_the_accounts_that_the_services_run_as() -> None:
    """Whoever renames an account would leave it without any bounds."""
    accounts = {
        "system:serviceaccount:{namespace}:{name}".format(**thing["metadata"])
        for thing in base()
        if thing["kind"] == "ServiceAccount"
    }
    meant = {
        user
        for thing in base()
        if thing["kind"].endswith("AdmissionPolicy")
        for condition in thing["spec"].get("matchConditions", ())
        for user in re.findall(
            r"system:serviceaccount:moorings-system:[a-z]+", condition["expression"]
        )
    }

    assert meant <= accounts
