"""Gangs: every rule of ours, broken one at a time."""

from __future__ import annotations

import pytest

from contracts.gang import Gang, MemberClaim
from contracts.meta import ObjectMeta
from contracts.pod_terms import HostPort
from tests.builders import (
    claim_spec,
    gang,
    gang_constraint,
    member,
    member_claim,
    request,
    topology_level,
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
        (
            gang(topology=(topology_level(mode="Maybe"),)),
            "spec.topology[0].mode: Unsup",
        ),
        (gang(topology=(topology_level(),) * 2), "spec.topology[1]: Duplicate value"),
        (gang(topology=(topology_level(""),)), "spec.topology[0].key: Invalid value"),
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
                "worker": "must be member/claim/request",
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
