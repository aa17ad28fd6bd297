"""What watches the services, as kubectl builds it: scraping, monitors and traces."""

from __future__ import annotations

import os
from pathlib import Path

import yaml

from tests.lab.controlplane.kubectl import build
from tests.lab.manifests import BASE, K8S, TOKENS, WORKLOADS, Manifest, write_site


def _with_component(folder: Path, name: str) -> Path:
    """Write a site with tokens and one more component."""
    site = write_site(folder / name, BASE, {"drivers": "", "classes": ""})
    written = yaml.safe_load((site / "kustomization.yaml").read_text())
    written["components"] += [
        os.path.relpath(path, site) for path in (TOKENS, K8S / "components" / name)
    ]
    (site / "kustomization.yaml").write_text(yaml.safe_dump(written))
    return site


def test_every_service_is_scraped_by_annotation(
    control_plane_programs: Path, tmp_path: Path
) -> None:
    """At its health port, with a policy that lets Prometheus ask."""
    site = _with_component(tmp_path, "scrape-annotations")
    built = build(control_plane_programs, site)
    asked = set()
    for thing in built:
        if thing["kind"] in WORKLOADS:
            template = thing["spec"]["template"]
            annotations = template["metadata"].get("annotations") or {}
            if "prometheus.io/scrape" in annotations:
                (container,) = template["spec"]["containers"]
                ports = {port["name"]: port for port in container["ports"]}
                health = str(ports["health"]["containerPort"])
                assert annotations["prometheus.io/port"] == health
                asked.add(thing["metadata"]["name"])
    assert asked == {"authcallout", "nodeagent", "publisher", "solver"}
    assert _scrape_policy(built) == asked


def test_monitoring_watches_every_service(
    control_plane_programs: Path, tmp_path: Path
) -> None:
    """The monitor selects pods that have the port, and no others."""
    site = _with_component(tmp_path, "monitoring")
    built = build(control_plane_programs, site)
    (monitor,) = (thing for thing in built if thing["kind"] == "PodMonitor")
    (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
    wanted = monitor["spec"]["selector"]["matchLabels"].items()
    watched = {
        thing["metadata"]["name"]
        for thing in built
        if thing["kind"] in WORKLOADS
        and wanted <= thing["spec"]["template"]["metadata"]["labels"].items()
        and endpoint["port"]
        in {
            port["name"]
            for container in thing["spec"]["template"]["spec"]["containers"]
            for port in container.get("ports", ())
        }
    }
    assert watched == {"authcallout", "nodeagent", "publisher", "solver"}
    assert _scrape_policy(built) == watched
    (boards,) = (
        thing
        for thing in built
        if thing["kind"] == "ConfigMap"
        and thing["metadata"]["name"] == "moorings-boards"
    )
    assert boards["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert len(boards["data"]) == 5


def _scrape_policy(built: list[Manifest]) -> set[str]:
    """Name whom Prometheus may ask."""
    policy = _network_policy(built, "metrics")
    (rule,) = policy["spec"]["ingress"]
    assert rule["ports"] == [{"protocol": "TCP", "port": "health"}]
    return _selected(policy)


def _network_policy(built: list[Manifest], name: str) -> Manifest:
    (policy,) = (
        thing
        for thing in built
        if thing["kind"] == "NetworkPolicy" and thing["metadata"]["name"] == name
    )
    return policy


def _selected(policy: Manifest) -> set[str]:
    """Name the services whose pods a policy is about."""
    (expression,) = policy["spec"]["podSelector"]["matchExpressions"]
    return set(expression["values"])


def test_traces_go_to_a_collector_that_may_be_reached(
    control_plane_programs: Path, tmp_path: Path
) -> None:
    """The services that are told where are those that may go there."""
    site = _with_component(tmp_path, "traces")
    built = build(control_plane_programs, site)
    told = set()
    for thing in built:
        if thing["kind"] == "Deployment":
            (container,) = thing["spec"]["template"]["spec"]["containers"]
            name = thing["metadata"]["name"]
            variables = {entry["name"] for entry in container.get("env", ())}
            if f"{name.upper()}_TRACES_ENDPOINT" in variables:
                told.add(name)
    selected = _selected(_network_policy(built, "traces"))
    assert told == selected == {"publisher", "solver"}
