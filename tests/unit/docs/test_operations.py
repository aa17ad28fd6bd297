"""What docs for operators and on threats name is there, and their tables are whole."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
import yaml

from authcallout.callout import _EARLIEST
from authcallout.config import AuthCalloutConfig
from authcallout.login import MAX_NAMESPACES
from contracts.liveness import SILENT_S
from contracts.messages import MAX_NODE_DEVICES, MAX_NODE_POOLS
from moorings.cli import drain
from nodeagent.config import NodeAgentConfig
from nodeagent.kubelet import drift_teller
from publisher.config import PublisherConfig
from publisher.slices.eviction_budget import FEWEST
from runtime.settings import ServiceConfig
from solver.service.config import SolverConfig
from solver.service.notices import QUEUED_S
from tests.lab import manifests

ROOT = Path(__file__).parents[3]
PAGES = ("install", "rights", "operate", "troubleshoot")
OPERATIONS = "\n".join((ROOT / "docs" / f"{page}.md").read_text() for page in PAGES)
THREATS = (ROOT / "docs" / "threats.md").read_text()
CONFIGS: dict[str, type[ServiceConfig]] = {
    "SOLVER": SolverConfig,
    "PUBLISHER": PublisherConfig,
    "NODEAGENT": NodeAgentConfig,
    "AUTHCALLOUT": AuthCalloutConfig,
}
ENDINGS = ("conf", "crt", "key", "sh", "txt")
"""Of files; `a` and `b` are logins."""
AUTHCALLOUT = AuthCalloutConfig(issuer_file="i", curve_file="c")
PACKAGES = ("authcallout", "moorings", "nodeagent", "publisher", "runtime", "solver")


def section(heading: str) -> str:
    """Take what stands below a heading, up to the next of its rank."""
    _, found, rest = OPERATIONS.partition(f"\n{heading}\n")
    assert found, heading
    rank = heading.partition(" ")[0]
    return re.split(rf"\n{rank} ", rest)[0]


def sources() -> str:
    """Read all code of the services."""
    files = [path for name in PACKAGES for path in sorted((ROOT / name).rglob("*.py"))]
    return "\n".join(path.read_text() for path in files)


def test_each_variable_that_is_named_is_a_setting() -> None:
    named = set(re.findall(rf"\b({'|'.join(CONFIGS)})_([A-Z_]+)\b", OPERATIONS))
    assert len(named) >= 10
    for service, variable in named:
        fields = CONFIGS[service].__struct_fields__
        assert variable.lower() in fields, f"{service}_{variable}"


def test_each_line_of_a_log_that_is_named_is_written() -> None:
    """`pool.refused`, wherever a log is spoken of."""
    written = sources()
    names = {
        name
        for name in re.findall(r"`([a-z]+\.[a-z_]+)`", OPERATIONS)
        if name.rpartition(".")[2] not in {*ENDINGS, "a", "b"}
    }
    assert len(names) >= 15
    for name in names:
        assert f'"{name}"' in written, name


def test_the_table_of_policies_is_all_there_are() -> None:
    """Each policy by its name, or by its end behind the one before."""
    rows = re.findall(
        r"^\| (`moorings-[^|]*) \|", section("## Admission"), re.MULTILINE
    )
    named: set[str] = set()
    for row in rows:
        first, *others = re.findall(r"`([^`]+)`", row)
        stem = first.removesuffix("-pods")
        named |= {first, *(f"{stem}{o}" if o[0] == "-" else o for o in others)}
    there = {
        manifest["metadata"]["name"]
        for manifest in manifests.base()
        if manifest["kind"].endswith("AdmissionPolicy")
    }
    assert named == there


def test_the_table_of_roles_is_all_there_are() -> None:
    named = set(re.findall(r"`(moorings-[a-z-]+)`", section("## Who may do what")))
    paths = {*(ROOT / "k8s").rglob("*-clusterrole.yaml")}
    paths -= {*(ROOT / "k8s/chart").rglob("*")}  # which is made of the others
    there = {yaml.safe_load(path.read_text())["metadata"]["name"] for path in paths}
    assert there <= named


@pytest.mark.parametrize(
    "said",
    [
        f"At most {MAX_NAMESPACES} namespaces",
        f"{MAX_NODE_DEVICES:,} devices a node, in {MAX_NODE_POOLS} pools",
        f"and {FEWEST} at least, begin to end their pods",
        f"within a minute {PublisherConfig().evictions_percent:.0f} % of all",
        f"The rights last {AUTHCALLOUT.lifetime_s / 60:.0f} minutes (`AUTHC",
        f"An answer holds for {AUTHCALLOUT.remember_s:.0f} seconds for the same",
        f"has been silent on the bus for {SILENT_S:.0f} s",
        f"compares three things every {drift_teller.LOOK_S:.0f} s",
        f"What differs for {NodeAgentConfig().drift_lasts_s:.0f} s (`NODEAGENT_D",
        f"until no claim is allocated there, for {drain._SETTLE_S:.0f} s at least",
    ],
)
def test_each_limit_is_the_one_of_the_code(said: str) -> None:
    assert said in " ".join(OPERATIONS.split())
    assert (_EARLIEST, QUEUED_S) == (0.8, 5.0)


def test_each_test_that_a_finding_names_is_there() -> None:
    """Files by their names, tests by theirs."""
    files = {path.name: path for path in (ROOT / "tests").rglob("test_*.py")}
    tests = {
        node.name
        for path in files.values()
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    named = {
        name.rpartition("/")[2]
        for name in re.findall(r"`([\w/]*test_\w+\.py)`", THREATS)
    }
    assert len(named) >= 30
    assert named <= files.keys()
    assert {*re.findall(r"`(test_\w+)`", THREATS)} <= tests
