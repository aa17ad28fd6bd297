"""What `moorings plan` says of an export and a manifest is what a cluster then does."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from contracts.messages import GangPending
from moorings.bus_client import Client
from moorings.cli.main import app
from tests.lab.cluster import GATES, gang_pod, is_running, template
from tests.lab.controlplane.client import Json, Kube
from tests.lab.controlplane.fleet import Fleet
from tests.lab.controlplane.kubectl import Kubectl
from tests.lab.controlplane.objects import claim, pod, requests
from tests.lab.services import eventually
from tests.lab.waits import until_told

EXPORT = (
    "resourceslices,deviceclasses,resourceclaims,resourceclaimtemplates"
    ",pods,nodes,gangs"
)
"""As README has it."""


@pytest.fixture(scope="module")
def served(gangs: None) -> None:
    """See that the stack sees Gangs from the start."""
    assert gangs is None


def gang(site: Fleet, name: str, *pods: Json, size: int = 0) -> list[Json]:
    """Describe pods of a gang, `<gang>-<number>` each, which the test finds again."""
    made = [
        gang_pod(
            site.namespace,
            f"{name}-{number}",
            gang=name,
            size=size or len(pods),
            node_selector=site.labels,
            **fields,
        )
        for number, fields in enumerate(pods)
    ]
    for each in made:
        each["metadata"]["labels"]["case"] = name
    return made


def job(site: Fleet, name: str, count: int, devices: str) -> Json:
    """Describe a Job at our gate, without any label of ours."""
    made = pod(site.namespace, "", templates={"d": devices}, node_selector=site.labels)
    made["spec"]["schedulingGates"] = GATES
    template = {"metadata": {"labels": {"case": name}}, "spec": made["spec"]}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": site.namespace},
        "spec": {"parallelism": count, "completions": count, "template": template},
    }


class Oracle:
    """Asks for plans of what the cluster holds and of a manifest beside it."""

    def __init__(self, kubectl: Kubectl, site: Fleet, folder: Path) -> None:
        self._kubectl = kubectl
        self._site = site
        self._folder = folder

    def ask(self, name: str, *new: Json) -> Json:
        """Say what becomes of the gang of a name."""
        export = self._kubectl("get", EXPORT, "-A", "-o", "yaml")
        manifest = self._folder / f"{name}.json"
        listed = {"apiVersion": "v1", "kind": "List", "items": list(new)}
        manifest.write_text(json.dumps(listed))
        words = ("plan", "-f", "-", "-f", str(manifest), "-o", "json")
        answer = CliRunner().invoke(app, words, input=export)
        # The control plane is shared: what other tests left may be an error, too.
        assert answer.exit_code in (0, 1, 3), answer.stderr
        plan = json.loads(answer.stdout)
        whose = (self._site.namespace, name)
        (found,) = [
            gang for gang in plan["gangs"] if (gang["namespace"], gang["name"]) == whose
        ]
        return dict(found)


async def nodes_of(kube: Kube, site: Fleet, name: str, count: int) -> Counter[str]:
    """Wait until so many pods of a case run, and count their nodes."""
    running: list[Json] = []

    async def all_run() -> bool:
        selected = {"labelSelector": f"case={name}"}
        pods = await kube.list("v1", "Pod", site.namespace, **selected)
        running[:] = filter(is_running, pods)
        return len(running) == count

    await eventually(all_run, f"{count} pods of {name} run")
    return Counter(each["spec"]["nodeName"] for each in running)


async def rules_of(client: Client, site: Fleet, name: str) -> list[str]:
    """Wait until a gang was refused, and name the rules that say why."""
    rules: list[str] = []

    async def refused() -> bool:
        for record in await client.fetch_gangs():
            is_it = (record.namespace, record.name) == (site.namespace, name)
            if is_it and isinstance(record.decision, GangPending):
                rules[:] = [str(reason.rule) for reason in record.decision.reasons]
        return bool(rules)

    await eventually(refused, f"gang {name} was refused")
    return rules


async def test_a_plan_is_what_the_cluster_does(
    kube: Kube, site: Fleet, client: Client, kubectl: Kubectl, tmp_path: Path
) -> None:
    """Eight devices on two nodes; each case beside all that came before it."""
    oracle = Oracle(kubectl, site, tmp_path)
    for name, count in (("one", 1), ("pair", 2), ("nine", 9)):
        await template(site, name, count=count)
    shared = claim(site.namespace, "shared", requests(site.device_class, 2))
    launcher: dict[str, Any] = {"requests": {"cpu": "1"}}
    huge: dict[str, Any] = {"requests": {"cpu": "1000"}}
    worker: dict[str, Any] = {"templates": {"d": "one"}}
    sharing: dict[str, Any] = {"claims": {"d": "shared"}}
    lone = gang_pod(
        site.namespace, "lone", templates={"d": "one"}, node_selector=site.labels
    )
    cases: list[tuple[str, str, list[Json]]] = [
        ("whole", "allocated", [job(site, "whole", 2, "pair")]),
        ("huge", "NodeResourcesInsufficient", gang(site, "huge", huge, worker)),
        ("large", "", [job(site, "large", 1, "nine")]),
        ("few", "PodsMissing", gang(site, "few", worker, size=3)),
        ("mpi", "allocated", gang(site, "mpi", launcher, worker, worker)),
        ("share", "allocated", [shared, *gang(site, "share", sharing, sharing)]),
        ("joins", "allocated", gang(site, "joins", sharing, launcher)),
        ("lone", "", [lone]),
    ]
    for name, expected, new in cases:
        foretold = oracle.ask(name, *new)
        rules = [reason["rule"] for reason in foretold.get("reasons", ())]
        assert expected in (foretold["verdict"], "", *rules), (name, foretold)
        kubectl("create", "-f", "-", given=new)
        if foretold["verdict"] == "allocated":
            members = foretold["members"]
            nodes = Counter(each["node"] for each in members for _ in each["pods"])
            assert await nodes_of(kube, site, name, nodes.total()) == nodes
        elif foretold["verdict"] == "none":
            assert await rules_of(client, site, name) == rules
        else:
            note = await until_told(kube, await kube.get(new[-1]), rules[0])
            assert note.startswith(foretold["reasons"][0]["message"])
