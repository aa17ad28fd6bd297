"""`moorings plan` refuses by ResourceQuotas what a real API server refuses."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from contracts.codec import to_builtins
from contracts.kubernetes.decode import to_kubernetes
from tests.builders import claim_template, device_class, devices, resource_slice
from tests.builders.inputs import written_job
from tests.conftest import release
from tests.lab.command_line import moorings
from tests.lab.controlplane import objects
from tests.lab.controlplane.client import Json, Kube, RefusedError, named

PLAIN, SERVED = "quota.example.com", "served.quota.example.com"
RESOURCE = "quota.example.com/gpu"
NOTICED_S = 60
LIMITS = {
    f"{PLAIN}.deviceclass.resource.k8s.io/devices": "40",
    f"{SERVED}.deviceclass.resource.k8s.io/devices": "6",
    f"requests.{RESOURCE}": "4",
    f"requests.deviceclass.resource.kubernetes.io/{PLAIN}": "39",
    "count/resourceclaims.resource.k8s.io": "8",
}


def choice(*choices: tuple[str, int]) -> Json:
    subrequests = [
        {"name": f"c{number}", "deviceClassName": name, "count": count}
        for number, (name, count) in enumerate(choices)
    ]
    return {"devices": {"requests": [{"name": "r", "firstAvailable": subrequests}]}}


ASKED: list[Json] = [
    objects.requests(PLAIN, 3),
    {
        "devices": {
            "requests": [
                {
                    "name": "all",
                    "exactly": {"deviceClassName": PLAIN, "allocationMode": "All"},
                }
            ]
        }
    },
    choice((PLAIN, 3), (PLAIN, 5), (SERVED, 1)),
    choice((PLAIN, 3), (PLAIN, 4), (SERVED, 1)),
    objects.requests(PLAIN, 2),
    objects.requests(PLAIN, 1),
    objects.requests(SERVED, 4),
    objects.requests(SERVED, 3),
    objects.requests(SERVED, 2),
    objects.requests(SERVED, 1),
    *[objects.requests("other.quota.example.com", 1)] * 5,
]
"""Claims that come one after the other; by each of the limits some are too many."""


def quota(namespace: str) -> Json:
    made = named("v1", "ResourceQuota", "gpus", namespace)
    return {**made, "spec": {"hard": LIMITS}}


async def is_created(kube: Kube, made: Json, **how: str) -> bool:
    try:
        await kube.create(made, **how)
    except RefusedError as refused:
        if "exceeded quota" in refused.message:
            return False
        raise
    return True


async def test_plan_admits_the_claims_that_the_api_server_admits(
    kube: Kube, namespace: str, tmp_path: Path
) -> None:
    classes = [objects.device_class(name, "x") for name in (PLAIN, SERVED)]
    classes[1]["spec"]["extendedResourceName"] = RESOURCE
    for each in classes:
        await kube.create(each)
    limit = quota(namespace)
    stored = await kube.create(limit)
    # kube-controller-manager's part, which counts what there is.
    zero = dict.fromkeys(LIMITS, "0")
    await kube.patch(stored, {"status": {"hard": LIMITS, "used": zero}}, "status")
    far_too_many = objects.claim(namespace, "probe", objects.requests(SERVED, 9))
    async with asyncio.timeout(NOTICED_S):
        while await is_created(kube, far_too_many, dryRun="All"):
            pass
    claims = [
        objects.claim(namespace, f"c{number:02d}", spec)
        for number, spec in enumerate(ASKED)
    ]
    created = [await is_created(kube, each) for each in claims]
    for each in classes:
        await kube.delete(each)

    classes.append(objects.device_class("other.quota.example.com", "x"))
    planned = plan(tmp_path, limit, *classes, *claims)
    refused = {
        each["name"]
        for each in planned["gangs"]
        for reason in each["reasons"]
        if reason["rule"] == "ResourceQuotaExceeded"
    }
    assert [each["metadata"]["name"] not in refused for each in claims] == created
    assert any(created)
    assert not all(created)


def plan(folder: Path, *items: Any) -> Json:
    path = folder / "objects.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    arguments = ("-f", str(path), "--kubernetes-version", release(), "-o", "json")
    done = moorings("plan", *arguments, home=folder)
    assert done.returncode == 1, done.stderr
    found: Json = json.loads(done.stdout)
    return found


def test_the_command_names_the_quota_and_what_is_left(tmp_path: Path) -> None:
    room = resource_slice(*devices(8))
    template = claim_template(name="one")
    job = written_job("train", 4, gang="train", size=4, template="one")
    name = f"{device_class().metadata.name}.deviceclass.resource.k8s.io/devices"
    limit = {
        **named("v1", "ResourceQuota", "gpus", "team-a"),
        "spec": {"hard": {name: "8", "limits.cpu": "4"}},
        "status": {"used": {name: "6"}},
    }
    items = [to_builtins(to_kubernetes(x)) for x in (room, template, device_class())]
    path = tmp_path / "objects.json"
    path.write_text(
        json.dumps({"apiVersion": "v1", "kind": "List", "items": [*items, job, limit]})
    )
    done = moorings("plan", "-f", str(path), home=tmp_path)
    assert done.returncode == 1
    assert "note: ResourceQuota team-a/gpus: limits.cpu is not checked" in done.stderr
    said = " ".join(done.stdout.split())
    assert (
        "(ResourceQuota team-a/gpus): 8 of gpu.example.com are allowed, 6 are used, "
        "4 more are needed"
    ) in said
