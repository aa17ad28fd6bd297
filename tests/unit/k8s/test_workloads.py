"""What runs in k8s/base: its variables, probes, limits and who it is."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from nodeagent.config import NodeAgentConfig
from publisher.config import PublisherConfig
from runtime.bus.permissions import server_configuration
from runtime.config import read_config
from runtime.settings import ServiceConfig
from solver.service.config import SolverConfig
from tests.lab.manifests import (
    BASE,
    K8S,
    SIMULATED,
    Manifest,
    base,
    environment,
    workloads,
)

CONFIGS: dict[str, type[ServiceConfig]] = {
    "nodeagent": NodeAgentConfig,
    "publisher": PublisherConfig,
    "solver": SolverConfig,
}
POD = {
    "metadata_name": "pod-1",
    "metadata_namespace": "moorings-system",
    "metadata_uid": "9b1f0e1c-3e5f-4c39-9f4e-1c8f7f0b2d3a",
    "spec_nodeName": "node-1",
}
IMAGE = "moorings:0.1.0"
PROBES = ("startup", "liveness", "readiness")


def _pod(name: str) -> Manifest:
    pod: Manifest = workloads()[name]["spec"]["template"]["spec"]
    return pod


def _container(name: str) -> Manifest:
    (container,) = _pod(name)["containers"]
    found: Manifest = container
    return found


@pytest.mark.parametrize("name", CONFIGS)
def test_variables_are_those_of_the_configuration(name: str) -> None:
    """Unknown ones are refused at the start, and each is of its type."""
    variables = environment(name, **POD)
    prefix = f"{name.upper()}_"
    config = read_config(CONFIGS[name], prefix, variables)

    own = variables.keys() - {"SSL_CERT_FILE"}  # OpenSSL's
    assert {variable[: len(prefix)] for variable in own} == {prefix}
    assert config.servers == tuple(
        f"nats://nats-{number}.nats.moorings-system.svc:4222" for number in range(3)
    )
    assert config.bus_user == name


@pytest.mark.parametrize(
    ("folder", "names"),
    [
        (BASE, ()),
        (K8S / "site", ()),
        (SIMULATED, ("gpu.moorings.dev", "nic.moorings.dev")),
    ],
)
def test_publisher_owns_nothing_until_told(
    folder: Path, names: tuple[str, ...]
) -> None:
    variables = environment("publisher", folder, **POD)
    config = read_config(PublisherConfig, "PUBLISHER_", variables)

    assert config.owned_drivers == names
    assert config.owned_classes == names
    assert config.namespace == "moorings-system"


@pytest.mark.parametrize("name", CONFIGS)
def test_service_is_probed_where_it_answers(name: str) -> None:
    container = _container(name)
    config = read_config(CONFIGS[name], f"{name.upper()}_", environment(name, **POD))
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    paths = {
        kind: container[kind].get("httpGet")
        for kind in ("livenessProbe", "readinessProbe")
    }

    assert config.health_address == f"0.0.0.0:{ports['health']}"
    assert paths["readinessProbe"] == {"path": "/readyz", "port": "health"}
    if isinstance(config, NodeAgentConfig):
        # It calls the sockets as kubelet does.
        assert container["livenessProbe"]["grpc"] == {"port": ports["liveness"]}
        assert config.liveness_address == f"0.0.0.0:{ports['liveness']}"
    else:
        assert paths["livenessProbe"] == {"path": "/livez", "port": "health"}


@pytest.mark.parametrize("name", CONFIGS)
def test_services_are_of_one_image(name: str) -> None:
    command = {"nodeagent": "agent"}.get(name, name)

    assert _container(name)["image"] == IMAGE
    assert _container(name)["args"] == [command]


@pytest.mark.parametrize("name", [*CONFIGS, "nats"])
def test_pod_has_no_more_than_it_needs(name: str) -> None:
    pod, container = _pod(name), _container(name)
    boxed: dict[str, Any] = {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }

    assert pod["serviceAccountName"] == name
    has_rights = name in {"publisher", "nodeagent"}
    assert pod["automountServiceAccountToken"] is has_rights
    # A Service of our name would otherwise set variables that we refuse.
    assert pod["enableServiceLinks"] is False
    assert pod["priorityClassName"].startswith("moorings-")
    if name == "nodeagent":  # kubelet's folders are root's
        assert pod["securityContext"]["runAsUser"] == 0
    else:
        assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == boxed
    assert {"cpu", "memory"} == container["resources"]["requests"].keys()
    assert "memory" in container["resources"]["limits"]


def test_a_drain_waits_for_nats_alone() -> None:
    """A server that catches up counts for the quorum; services that fail do not."""
    policies = {
        item["metadata"]["name"]: item["spec"].get("unhealthyPodEvictionPolicy")
        for item in base()
        if item["kind"] == "PodDisruptionBudget"
    }
    always = dict.fromkeys(("publisher", "solver"), "AlwaysAllow")

    assert policies == {"nats": None, **always}


def test_the_next_server_waits_until_streams_are_there() -> None:
    """With js-server-only a server is ready seconds before its copies are."""
    probe = _container("nats")["startupProbe"]

    assert probe["httpGet"]["path"] == "/healthz"


def test_a_server_that_ends_has_time_to_hand_over() -> None:
    """SIGTERM alone closes all connections at once, lame duck mode bit by bit."""
    text = (BASE / "nats" / "nats.conf").read_text()
    (lame_duck_s,) = re.findall(r'lame_duck_duration: "(\d+)s"', text)
    stopping = _container("nats")["lifecycle"]["preStop"]["exec"]["command"]

    assert stopping == ["/nats-server", "--signal", "ldm=1"]
    assert _pod("nats")["terminationGracePeriodSeconds"] > int(lame_duck_s)


def test_nothing_of_nats_is_in_the_clear() -> None:
    """Clients, routes and the port of the probes speak TLS."""
    text = (BASE / "nats" / "nats.conf").read_text()
    probes = [_container("nats")[f"{name}Probe"]["httpGet"] for name in PROBES]

    assert re.findall(r"^http\w*", text, re.MULTILINE) == ["https"]
    assert len(re.findall(r"^ *tls \{", text, re.MULTILINE)) == 2
    assert {probe["scheme"] for probe in probes} == {"HTTPS"}


def test_each_service_is_given_its_own_password_and_no_other() -> None:
    """The server's variables hold none; the Secret of all is mounted there alone."""
    secrets = {
        name: {
            *(v["secret"]["secretName"] for v in volumes if "secret" in v),
            *(
                source["secret"]["name"]
                for volume in volumes
                for source in volume.get("projected", {}).get("sources", [])
                if "secret" in source
            ),
        }
        for name, volumes in ((n, _pod(n)["volumes"]) for n in (*CONFIGS, "nats"))
    }
    variables = [
        entry
        for name in secrets
        for entry in _container(name)["env"]
        if "secretKeyRef" in entry.get("valueFrom", {})
    ]

    services = {name: {"nats-tls", f"nats-user-{name}"} for name in CONFIGS}
    assert secrets == {"nats": {"nats-tls", "nats-passwords"}, **services}
    assert not variables


def test_permissions_of_the_bus_are_those_of_the_table() -> None:
    """Else: `moorings permissions > k8s/base/nats/permissions.conf`."""
    written = (BASE / "nats" / "permissions.conf").read_text()

    assert written == server_configuration()


def test_priority_classes_are_there() -> None:
    known = {t["metadata"]["name"] for t in base() if t["kind"] == "PriorityClass"}

    assert {_pod(name)["priorityClassName"] for name in workloads()} == known


def test_agents_mount_what_the_policy_lets_them() -> None:
    """The files of the node, and no others; the tree of the kernel only to read."""
    (policy,) = (
        thing
        for thing in base()
        if thing["kind"] == "ValidatingAdmissionPolicy"
        and thing["metadata"]["name"] == "moorings-pods"
    )
    (folders,) = (
        set(re.findall(r"'([^']+)'", variable["expression"]))
        for variable in policy["spec"]["variables"]
        if variable["name"] == "folders"
    )
    volumes = {
        volume["name"]: volume["hostPath"]["path"]
        for volume in _pod("nodeagent")["volumes"]
        if "hostPath" in volume
    }
    read_only = {
        mount["name"]
        for mount in _container("nodeagent")["volumeMounts"]
        if mount["name"] in volumes and mount.get("readOnly")
    }

    assert set(volumes.values()) == folders
    assert read_only == {"sys"}
