"""What the variables of a node agent mean together."""

from __future__ import annotations

import pytest

from contracts.topics import HEARTBEAT_S
from nodeagent.config import NodeAgentConfig
from nodeagent.health import TaintEffect
from runtime.config import read_config
from runtime.errors import ConfigError

NEEDED = {"NODEAGENT_CLUSTER": "lab", "NODEAGENT_FLEET": "lab.yaml"}


def read(**variables: str) -> NodeAgentConfig:
    """Read a configuration of a fleet with these variables."""
    named = {f"NODEAGENT_{name.upper()}": text for name, text in variables.items()}
    return read_config(NodeAgentConfig, "NODEAGENT_", {**NEEDED, **named})


def test_a_heartbeat_lasts_until_the_next_one() -> None:
    """A node whose heartbeat ends before the next would seem away in between."""
    assert read(heartbeat_s=str(HEARTBEAT_S - 1)).heartbeat_s == HEARTBEAT_S - 1
    with pytest.raises(ConfigError, match="HEARTBEAT_S"):
        read(heartbeat_s=str(HEARTBEAT_S))


@pytest.mark.parametrize(
    ("variables", "named"),
    [
        ({"FLEET": ""}, "NODEAGENT_SOURCES"),
        ({"SOURCES": "s.yaml"}, "NODEAGENT_SOURCES"),
        ({"FLEET": "", "SOURCES": "s.yaml"}, "NODEAGENT_NODE"),
        (
            {"FLEET": "", "SOURCES": "s.yaml", "NODE": "n", "FAULTS_FILE": "f"},
            "NODEAGENT_FAULTS_FILE",
        ),
        ({"UNHEALTHY_EFFECT": "NoExecute"}, "NODEAGENT_EVICT_REASONS"),
        ({"UNKNOWN_EFFECT": "NoExecute"}, "NODEAGENT_EVICT_REASONS"),
    ],
)
def test_variables_that_do_not_go_together_are_refused(
    variables: dict[str, str], named: str
) -> None:
    """Before anything starts, with the variable."""
    with pytest.raises(ConfigError, match=named):
        read(**variables).check()


def test_no_device_ends_its_pods_unless_a_reason_is_listed() -> None:
    """What evicts is said, never assumed."""
    read().check()
    assert read().health_policy.evict_reasons == frozenset()
    assert read().health_policy.unhealthy_effect is TaintEffect.NO_SCHEDULE
    listed = read(evict_reasons="Xid79, LinkDown").health_policy.evict_reasons
    assert listed == {"Xid79", "LinkDown"}


def test_evidence_is_as_the_variables_say() -> None:
    """Each threshold of health is a variable of its own."""
    policy = read(bad_readings="7", good_readings="9", recovery_s="1.5").health_policy
    assert (policy.bad_readings, policy.good_readings, policy.recovery_s) == (7, 9, 1.5)
