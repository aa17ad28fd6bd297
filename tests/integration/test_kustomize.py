"""What kustomize makes of k8s/."""

from __future__ import annotations

import copy
import os
import re
import shutil
import subprocess
import textwrap
from pathlib import Path
from typing import Any

import pytest
import yaml

from contracts.ids import NodeName
from nodeagent.sources.nvml.spec import NvmlSpec
from nodeagent.sources.source_file import read_sources
from tests.lab.controlplane.client import Kube, RefusedError, named
from tests.lab.controlplane.kubectl import KubectlError, build
from tests.lab.manifests import (
    BASE,
    K8S,
    OUR_IMAGE,
    OVERLAYS,
    SIMULATED,
    TOKENS,
    WORKLOADS,
    Manifest,
    base,
    workloads,
    write_image,
    write_site,
)


def _policies(built: list[Manifest]) -> list[str]:
    return [
        yaml.safe_dump(thing, width=10_000)
        for thing in built
        if thing["kind"].endswith("AdmissionPolicy")
    ]


@pytest.mark.parametrize(
    ("resources", "policies"), [(BASE, 6), (OVERLAYS / "kubernetes-1.35", 4)]
)
def test_ownership_is_said_in_one_place(
    control_plane_programs: Path, tmp_path: Path, resources: Path, policies: int
) -> None:
    """Publisher and policies follow from the one list, on old releases too."""
    said = {"drivers": "a.example.com", "classes": "big.example.com,small"}
    site = write_site(tmp_path / "site", resources, said)

    built = build(control_plane_programs, site)
    listing = [text for text in _policies(built) if "big.example.com,small" in text]
    assert len(listing) == policies
    (owned,) = (
        thing
        for thing in built
        if thing["kind"] == "ConfigMap" and "drivers" in thing["data"]
    )
    assert owned["data"] == said
    (container,) = (
        container
        for thing in built
        if thing["kind"] == "Deployment" and thing["metadata"]["name"] == "publisher"
        for container in thing["spec"]["template"]["spec"]["containers"]
    )
    named = {
        entry["valueFrom"]["configMapKeyRef"]["name"]
        for entry in container["env"]
        if "configMapKeyRef" in entry.get("valueFrom", {})
    }
    # The name has a hash, so the publisher starts anew when the list changes.
    assert named == {owned["metadata"]["name"]} != {"ownership"}


@pytest.mark.parametrize("overlay", [SIMULATED, OVERLAYS / "single-node"])
def test_variables_stand_before_what_uses_them(
    control_plane_programs: Path, overlay: Path
) -> None:
    """A `$(NAME)` is left as it is where NAME stands behind it."""
    used = []
    for thing in build(control_plane_programs, overlay):
        if thing["kind"] not in WORKLOADS:
            continue
        (container,) = thing["spec"]["template"]["spec"]["containers"]
        names: list[str] = []
        for entry in container.get("env", ()):
            for name in re.findall(r"\$\((\w+)\)", entry.get("value", "")):
                assert name in names, f"{entry['name']} stands before {name}"
                used.append(name)
            names.append(entry["name"])
    assert used == ["NODEAGENT_NODE"]


def test_answering_kueue_is_one_component(
    control_plane_programs: Path, tmp_path: Path
) -> None:
    """It switches the publisher on and gives it the rights."""
    said = {"drivers": "a.example.com", "classes": ""}
    site = write_site(tmp_path / "site", BASE, said)
    written = yaml.safe_load((site / "kustomization.yaml").read_text())
    component = os.path.relpath(K8S / "components" / "kueue", site)
    written.setdefault("components", []).append(component)
    (site / "kustomization.yaml").write_text(yaml.safe_dump(written))
    built = build(control_plane_programs, site)
    roles = {thing["metadata"]["name"] for thing in built if "rules" in thing}
    assert "moorings-publisher-kueue" in roles
    (publisher,) = (
        thing
        for thing in built
        if thing["kind"] == "Deployment" and thing["metadata"]["name"] == "publisher"
    )
    (container,) = publisher["spec"]["template"]["spec"]["containers"]
    assert {"name": "PUBLISHER_KUEUE_CHECKS", "value": "true"} in container["env"]


def test_agents_beside_nvidia_s_driver_tell_health_alone(
    control_plane_programs: Path, tmp_path: Path
) -> None:
    """The component's file is one that the agent takes, and has nothing to serve."""
    site = write_site(tmp_path / "site", BASE, {"drivers": "", "classes": ""})
    written = yaml.safe_load((site / "kustomization.yaml").read_text())
    component = os.path.relpath(K8S / "components" / "beside-nvidia", site)
    written["components"].append(component)
    (site / "kustomization.yaml").write_text(yaml.safe_dump(written))
    built = build(control_plane_programs, site)
    (sources,) = (
        thing["data"]["sources.yaml"]
        for thing in built
        if thing["kind"] == "ConfigMap"
        and thing["metadata"]["name"].startswith("sources-")
    )
    (spec,) = read_sources(sources, "sources.yaml", NodeName("node-1"))
    assert isinstance(spec, NvmlSpec)
    assert (spec.health_only, spec.driver) == (True, "gpu.nvidia.com")
    assert spec.pool_of(NodeName("node-1")) == "node-1"
    (agent,) = (thing for thing in built if thing["kind"] == "DaemonSet")
    pod = agent["spec"]["template"]["spec"]
    assert pod["runtimeClassName"] == "nvidia"
    (container,) = pod["containers"]
    assert {"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"} in container["env"]
    given = {entry["name"] for entry in container["env"]}
    assert {"NODEAGENT_NODE", "NODEAGENT_SOURCES"} <= given


def test_a_site_without_its_image_is_refused(control_plane_programs: Path) -> None:
    """Before anything is applied, by words that say what to do."""
    with pytest.raises(KubectlError, match="write-your-image-below-and-remove-this"):
        build(control_plane_programs, K8S / "site")


def test_site_of_the_repository_is_whole(
    control_plane_programs: Path, tmp_path: Path
) -> None:
    """With the secrets that it names it is all that there is to apply."""
    folder = tmp_path / "k8s"
    shutil.copytree(K8S, folder)
    command = ["bash", str(folder / "secrets.sh"), str(folder / "site/secrets"), "new"]
    subprocess.run(command, capture_output=True, check=True)
    write_image(folder / "site")

    built = build(control_plane_programs, folder / "site")
    there = {(thing["kind"], thing["metadata"]["name"]) for thing in built}
    base_objects = {(thing["kind"], thing["metadata"]["name"]) for thing in base()}
    assert base_objects <= there
    assert {("Secret", "nats-tls"), ("Secret", "nats-passwords")} <= there
    kinds = [thing["kind"] for thing in built]
    bound = sum(kind in WORKLOADS for kind in kinds)
    assert kinds[0] == "Namespace"
    assert set(kinds[-bound:]) == set(WORKLOADS)
    text = yaml.safe_dump_all(built)
    assert text.count(f"image: {OUR_IMAGE}") == 4
    assert [text for text in _policies(built) if "moorings.dev,nic" in text] == [
        text
        for text in _policies(built)
        if "name: moorings-nodeagent\n" in text
        or "name: moorings-publisher-claims" in text
        or "name: moorings-publisher-slices" in text
    ]


def _read_yaml_of_install(first_line: str) -> Manifest:
    """Read what docs/install.md says to write into a site."""
    text = (K8S.parent / "docs" / "install.md").read_text()
    (found,) = (
        textwrap.dedent(block)
        for block in re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
        if block.lstrip().startswith(first_line)
    )
    said: Manifest = yaml.safe_load(found)
    return said


def test_a_site_names_digests_and_the_api_server(
    control_plane_programs: Path, tmp_path: Path
) -> None:
    """As docs/install.md says: each image has one, and no other address is reached."""
    said = {"drivers": "", "classes": ""}
    site = write_site(tmp_path / "site", BASE, said)
    written = yaml.safe_load((site / "kustomization.yaml").read_text())
    written["components"].append(os.path.relpath(TOKENS, site))
    written |= _read_yaml_of_install("images:") | _read_yaml_of_install("patches:")
    text = yaml.safe_dump(written).replace("sha256:...", f"sha256:{'0' * 64}")
    (site / "kustomization.yaml").write_text(text)
    built = build(control_plane_programs, site)

    images = {
        container["image"]
        for thing in built
        if thing["kind"] in WORKLOADS
        for container in thing["spec"]["template"]["spec"]["containers"]
    }
    digest = f"@sha256:{'0' * 64}"
    (nats,) = workloads()["nats"]["spec"]["template"]["spec"]["containers"]
    assert images == {f"REGISTRY/moorings:TAG{digest}", f"{nats['image']}{digest}"}
    anywhere = {
        thing["metadata"]["name"]
        for thing in built
        if thing["kind"] == "NetworkPolicy"
        and any("to" not in rule for rule in thing["spec"].get("egress", ()))
    }
    assert not anywhere


def test_agents_of_the_site_show_tokens(
    control_plane_programs: Path, tmp_path: Path
) -> None:
    """And no agent has a password, though `k8s/base` alone gives it one."""
    said = {"drivers": "", "classes": ""}
    site = write_site(tmp_path / "site", BASE, said)
    written = yaml.safe_load((site / "kustomization.yaml").read_text())
    written["components"].append(os.path.relpath(TOKENS, site))
    (site / "kustomization.yaml").write_text(yaml.safe_dump(written))
    built = {
        (thing["kind"], thing["metadata"]["name"].partition("-")[0]): thing
        for thing in build(control_plane_programs, site)
    }

    agent = built["DaemonSet", "nodeagent"]["spec"]["template"]["spec"]
    (container,) = agent["containers"]
    said = {entry["name"]: entry.get("value", "") for entry in container["env"]}
    assert said["NODEAGENT_BUS_USER"] == "nodeagent $(NODEAGENT_NODE)"
    (bus,) = (volume for volume in agent["volumes"] if volume["name"] == "bus")
    given = [next(iter(source)) for source in bus["projected"]["sources"]]
    assert given == ["secret", "serviceAccountToken"]
    nats = built["StatefulSet", "nats"]["spec"]["template"]["spec"]
    mounts = {mount["mountPath"] for mount in nats["containers"][0]["volumeMounts"]}
    assert {"/etc/nats/callout", "/etc/nats/passwords"} <= mounts
    assert "auth_callout" in built["ConfigMap", "nats"]["data"]["permissions.conf"]


def test_what_is_deleted_with_moorings_holds_no_gang(
    control_plane_programs: Path,
) -> None:
    """Deleting a CustomResourceDefinition deletes every object of it."""
    built = build(control_plane_programs, SIMULATED)
    assert "CustomResourceDefinition" not in {thing["kind"] for thing in built}


def test_base_is_built_as_it_is_written(control_plane_programs: Path) -> None:
    """Policies say what lies there; three ConfigMaps are made of files."""
    built = {
        (thing["kind"], thing["metadata"]["name"]): thing
        for thing in build(control_plane_programs, BASE)
    }
    made: dict[str, Manifest] = {}
    for name in ("nats", "ownership", "sources"):
        (key,) = (
            key for key in built if re.fullmatch(f"{name}-[a-z0-9]{{10}}", key[1])
        )
        made[name] = built.pop(key)
    nats = built["StatefulSet", "nats"]["spec"]["template"]["spec"]
    for volume in nats["volumes"]:
        if volume.get("configMap") == {"name": made["nats"]["metadata"]["name"]}:
            volume["configMap"] = {"name": "nats"}
    agent = built["DaemonSet", "nodeagent"]["spec"]["template"]["spec"]
    for volume in agent["volumes"]:
        if volume.get("configMap") == {"name": made["sources"]["metadata"]["name"]}:
            volume["configMap"] = {"name": "sources"}
    publisher = built["Deployment", "publisher"]["spec"]["template"]["spec"]
    for entry in publisher["containers"][0]["env"]:
        if "configMapKeyRef" in entry.get("valueFrom", {}):
            entry["valueFrom"]["configMapKeyRef"]["name"] = "ownership"
    written = {(thing["kind"], thing["metadata"]["name"]): thing for thing in base()}

    assert built == written
    for name, text in made["nats"]["data"].items():
        assert text == (BASE / "nats" / name).read_text()
    assert made["ownership"]["data"] == {"drivers": "", "classes": ""}


def _pod(name: str) -> Manifest:
    """Make a pod of a workload of k8s/base."""
    workload = workloads()[name]
    pod = named("v1", "Pod", f"{name}-0", "moorings-system")
    pod["spec"] = copy.deepcopy(workload["spec"]["template"]["spec"])
    for claimed in workload["spec"].get("volumeClaimTemplates", []):
        volume = {"name": claimed["metadata"]["name"], "emptyDir": {}}
        pod["spec"]["volumes"].append(volume)
    return pod


async def test_pods_of_base_fit_their_namespace(admin: Kube) -> None:
    """The policy takes them; the restricted standard takes all but the agent's."""
    space = await admin.get(named("v1", "Namespace", "moorings-system"))
    restricted = named("v1", "Namespace", "restricted")
    label = "pod-security.kubernetes.io/enforce"
    assert space["metadata"]["labels"][label] == "privileged"
    restricted["metadata"]["labels"] = {label: "restricted"}
    await admin.create(restricted)

    for name in workloads():
        pod = _pod(name)
        await admin.create(pod, dryRun="All", fieldValidation="Strict")
        pod["metadata"]["namespace"] = "restricted"
        del pod["spec"]["serviceAccountName"]
        del pod["spec"]["priorityClassName"]
        if name == "nodeagent":
            with pytest.raises(RefusedError, match="hostPath"):
                await _create_without_account(admin, pod)
        else:
            await _create_without_account(admin, pod)


async def _create_without_account(admin: Kube, pod: Manifest) -> None:
    """Try a pod where no service account has been made yet."""
    account = named("v1", "ServiceAccount", "default", "restricted")
    await admin.until(account, lambda _: True)
    await admin.create(pod, dryRun="All")


TOO_MUCH: dict[str, tuple[str, dict[str, Any], str]] = {
    "files of the node": (
        "publisher",
        {"volumes": [{"name": "v", "hostPath": {"path": "/sys"}}]},
        "only node agents mount files",
    ),
    "other files of the node": (
        "nodeagent",
        {"volumes": [{"name": "v", "hostPath": {"path": "/var/lib/kubelet"}}]},
        "only node agents mount files",
    ),
    "the node's network": ("nodeagent", {"hostNetwork": True}, "shares no network"),
    "the node's processes": ("nodeagent", {"hostPID": True}, "shares no network"),
    "root": (
        "solver",
        {"securityContext": {"seccompProfile": {"type": "RuntimeDefault"}}},
        "only node agents are root",
    ),
    "no seccomp": ("nodeagent", {"securityContext": {"runAsUser": 0}}, "seccomp"),
}


@pytest.mark.parametrize("what", TOO_MUCH)
async def test_a_pod_of_moorings_takes_no_more(admin: Kube, what: str) -> None:
    """Beyond what the manifests say, whoever creates it."""
    name, changes, reason = TOO_MUCH[what]
    pod = _pod(name)
    pod["spec"] |= changes
    for container in pod["spec"]["containers"]:
        container["volumeMounts"] = []
    with pytest.raises(RefusedError, match=reason):
        await admin.create(pod, dryRun="All")


@pytest.mark.parametrize(
    "changes",
    [
        {"privileged": True, "allowPrivilegeEscalation": True},
        {"allowPrivilegeEscalation": True},
        {"capabilities": {"drop": ["ALL"], "add": ["SYS_ADMIN"]}},
        {"capabilities": {}},
    ],
)
async def test_an_agent_is_root_without_capabilities(
    admin: Kube, changes: dict[str, Any]
) -> None:
    pod = _pod("nodeagent")
    (container,) = pod["spec"]["containers"]
    container["securityContext"] |= changes
    with pytest.raises(RefusedError, match="has no capability and gains no privilege"):
        await admin.create(pod, dryRun="All")
