"""Gangs: every rule of ours, broken one at a time."""

from __future__ import annotations

import pytest

from contracts.gang import Gang, MemberClaim
from contracts.gang_rules import EVEN, DevicePath
from contracts.meta import ObjectMeta
from contracts.pod_terms import HostPort
from tests.builders import (
    claim_spec,
    gang,
    gang_constraint,
    member,
    member_claim,
    request,
    sub_request,
    topology_rule,
)
from tests.builders.neighbours import spread
from tests.builders.violations import assert_broken


@pytest.mark.parametrize(
    ("broken", "beginning"),
    [
        (Gang(metadata=ObjectMeta(name="g")), "spec.members: Required value"),
        (gang(name="g" * 64), "metadata.name: Invalid value"),
        (gang(member(name="W")), "spec.members[0].name: Invalid value"),
        (gang(member(count=0)), "spec.members[0].count: Invalid value: 0"),
        (gang(member(count=5001)), "spec.members: Invalid value: 5001"),
        (gang(member(), member()), 'spec.members[1]: Duplicate value: "worker"'),
        (
            gang(member(member_claim(), member_claim())),
            'spec.members[0].claims[1]: Duplicate value: "gpus"',
        ),
        (
            gang(member(member_claim(name="a_b"))),
            'spec.members[0].claims[0].name: Invalid value: "a_b"',
        ),
        (
            gang(member(MemberClaim(name="gpus"))),
            "spec.members[0].claims[0]: Required value",
        ),
        (
            gang(member(member_claim(template="t", claim="c"))),
            "spec.members[0].claims[0]: Invalid value",
        ),
        (
            gang(member(member_claim(request(), template="t"))),
            "spec.members[0].claims[0]: Invalid value",
        ),
        (
            gang(member(member_claim(request(count=0)))),
            "spec.members[0].claims[0].spec.devices.requests[0].exactly.count",
        ),
        (gang(member(resources={"cpu": -1})), "spec.members[0].node.resources[cpu]"),
        (
            gang(member(node_selector={"a": "b c"})),
            "spec.members[0].node.nodeSelector[a]: Invalid value",
        ),
        (gang(topology=(topology_rule(mode="Maybe"),)), "spec.topology[0].mode: Unsup"),
        *(
            (
                gang(member(count=2, min_count=count)),
                f"spec.members[0].minCount: {rule}",
            )
            for count, rule in {
                -1: "Invalid value: -1: must be greater than or equal to zero",
                3: "Invalid value: 3: must be at most count, which is 2",
            }.items()
        ),
        (
            gang(member(min_count=0), member(name="other", min_count=0)),
            "spec.members: Invalid value: 0: minCount must be greater than zero",
        ),
        *(
            (gang(topology=(rule,)), f"spec.topology[0].{message}")
            for message, rule in {
                'key: Invalid value: "rail"': topology_rule("attribute:rail"),
                'members[0]: Invalid value: "driver": there is no member driver': (
                    topology_rule("rack", "driver")
                ),
                "members[1]: Duplicate value": topology_rule("a", "worker", "worker"),
                "groupSize: Invalid value: 0": topology_rule(group_size=0),
                "maxPerDomain: Invalid value: -1": topology_rule(max_per_domain=-1),
            }.items()
        ),
        (
            gang(topology=(topology_rule(group_size=EVEN, mode="Preferred"),)),
            'spec.topology[0].groupSize: Invalid value: "Even": needs the mode',
        ),
        (
            gang(
                member(count=2, min_count=1),
                member(name="other", count=2, min_count=1),
                topology=(topology_rule("rack", "other", group_size=EVEN),),
            ),
            'spec.topology[0].groupSize: Invalid value: "Even": member other may',
        ),
        (gang(topology=(topology_rule(""),)), "spec.topology[0].key: Invalid value"),
        (
            gang(topology=(topology_rule(),) * 9),
            "spec.topology: Too many: 9: must have",
        ),
        (
            gang(topology=(topology_rule("a", *(f"m{n}" for n in range(65))),)),
            "spec.topology[0].members: Too many: 65: must have at most 64 items",
        ),
        (
            gang(constraints=(gang_constraint(),) * 17),
            "spec.constraints: Too many: 17: must have at most 16 items",
        ),
        (
            gang(constraints=(gang_constraint("a/b", *(f"m{n}" for n in range(33))),)),
            "spec.constraints[0].requests: Too many: 33: must have at most 32 items",
        ),
        (
            gang(member(topology_spread_constraints=(spread(skew=2**63 - 1),))),
            "spec.members[0].node.topologySpreadConstraints[0].maxSkew: Invalid value",
        ),
        *(
            (
                gang(member(host_ports=(HostPort(port=port),))),
                f"spec.members[0].node.hostPorts[0].port: Invalid value: {port}",
            )
            for port in (0, -1, 65536)
        ),
        (
            gang(member(host_ports=(HostPort(port=80, protocol="tcp"),))),
            "spec.members[0].node.hostPorts[0].protocol: Unsupported value",
        ),
        (gang(recovery="Pray"), 'spec.recovery: Unsupported value: "Pray"'),
        (
            gang(on_device_failure=("Xid79", "a b")),
            'spec.onDeviceFailure[1]: Invalid value: "a b"',
        ),
        (gang(on_device_failure=("A",) * 33), "spec.onDeviceFailure: Too many: 33"),
        (gang(max_recreations=-1), "spec.maxRecreations: Invalid value: -1"),
        (gang(weight=-1), "spec.weight: Invalid value: -1"),
        (
            gang(constraints=(gang_constraint(scope="Rack"),)),
            "spec.constraints[0].scope: Unsupported value",
        ),
        (
            gang(constraints=(gang_constraint("rail"),)),
            "spec.constraints[0].matchAttribute: Invalid value",
        ),
        (
            gang(constraints=(gang_constraint("a/b", distinct="a/b"),)),
            "spec.constraints[0]: Invalid value",
        ),
        *(
            (
                gang(constraints=(gang_constraint(None, entry),)),
                f'spec.constraints[0].requests[0]: Invalid value: "{entry}": {reason}',
            )
            for entry, reason in {
                "": "must be member[/claim[/request[/subrequest]]]",
                "worker/": "must be member[/claim[/request[/subrequest]]]",
                "worker/gpus/gpu/a/b": "must be member[/claim[/request[/subrequest]]]",
                "worker/gpus/gpu/big": "claim gpus has no request gpu/big",
                "driver/gpus/gpu": "there is no member driver",
                "worker/nics/gpu": "member worker has no claim nics",
                "worker/gpus/nic": "claim gpus has no request nic",
            }.items()
        ),
    ],
)
def test_a_broken_gang_is_refused(broken: Gang, beginning: str) -> None:
    """By the one field that breaks a rule."""
    assert_broken(broken, beginning)


def test_a_claim_of_a_member_is_written_out_or_named() -> None:
    """In exactly one way."""
    named = MemberClaim(name="gpus", spec=claim_spec(), claim_name="gpus-1")
    template = member_claim(template="gpus")
    unknown = gang_constraint(None, "worker/gpus/anything")

    assert_broken(gang(member(named)))
    assert_broken(gang(member(member_claim(claim="gpus-1"))))
    assert_broken(gang(member(template), constraints=(unknown,)))


def test_even_parts_may_be_few_in_a_domain() -> None:
    assert_broken(gang(topology=(topology_rule(group_size=EVEN, max_per_domain=4),)))


def test_rules_across_claims_may_name_members_claims_and_alternatives() -> None:
    """Each path that names something; several rules about one key."""
    alternatives = request(first_available=[sub_request(name="big")])
    wanted = member(member_claim(alternatives), count=4, min_count=2)
    paths = ("worker", "worker/gpus", "worker/gpus/gpu", "worker/gpus/gpu/big")
    scopes = ("Gang", "Member", "Pod")

    assert_broken(
        gang(
            wanted,
            member(name="spare", min_count=0),
            constraints=[gang_constraint(None, *paths, scope=one) for one in scopes],
            topology=(
                topology_rule(),
                topology_rule(group_size=2, max_per_domain=4),
                topology_rule("attribute:net.example.com/rail", "worker"),
            ),
        )
    )


def test_a_path_reads_as_it_is_written() -> None:
    """Part by part."""
    path = DevicePath.parse("worker/gpus/gpu/big")

    assert path == DevicePath("worker", "gpus", "gpu", "big")
    assert str(path) == "worker/gpus/gpu/big"
    assert DevicePath.parse("worker") == DevicePath("worker")
