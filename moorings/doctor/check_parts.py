"""Which parts run, in which version, and who leads. Pure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

from contracts.liveness import SILENT_S
from moorings.doctor.facts import BusFacts, ClusterFacts, Json, Unread
from moorings.doctor.findings import CheckLine, fail, ok, unread, warn
from moorings.gates import find_leader
from moorings.views.names import name_some
from moorings.views.silence import describe_no_solver

PARTS = ("authcallout", "nats", "nodeagent", "publisher", "solver")
_OPTIONAL = ("authcallout", "nodeagent")
"""A site may do without the callout, and without agents of ours."""
_OLDEST_KUBELET = 34
"""Of 1.34, the first with resource.k8s.io/v1."""
_MOST_SKEW = 3
"""Minor releases by which a kubelet may be behind its API server."""
_DECIDED_S = 60.0
"""A solver that leads gives a first decision within less, if only a reason."""
_MINOR = re.compile(r"v?(\d+)\.(\d+)")
_RUNTIME = re.compile(r"containerd://(\d+)\.(\d+)")
_FIRST_CDI = (1, 7)


def check_parts(facts: ClusterFacts, own_version: str) -> Iterator[CheckLine]:
    """Check the workloads of an installation, kubelets and container runtimes."""
    if isinstance(facts.workloads, Unread):
        yield unread("parts.workloads", facts.workloads)
    else:
        yield from _check_workloads(facts.workloads, own_version)
    if isinstance(facts.nodes, Unread):
        yield unread("parts.kubelets", facts.nodes)
    else:
        yield _check_kubelets(facts.nodes, facts.version)
        yield from _check_runtimes(facts.nodes)


def _check_workloads(
    workloads: tuple[Json, ...], own_version: str
) -> Iterator[CheckLine]:
    found = {str(item["metadata"]["name"]): item for item in workloads}
    missing = [name for name in PARTS if name not in found and name not in _OPTIONAL]
    if len(missing) == len(PARTS) - len(_OPTIONAL):
        yield warn(
            "parts.workloads",
            "no part of Moorings is installed in this namespace",
            "kubectl apply --server-side -k k8s/site, unless it is installed elsewhere",
        )
        return
    if missing:
        yield fail(
            "parts.workloads",
            f"not installed: {name_some(missing)}",
            "kubectl apply --server-side -k k8s/site",
        )
    ours = {name: item for name, item in found.items() if name in PARTS}
    yield from _check_ready(ours)
    yield from _check_agent_drivers(ours)
    yield _check_images(ours, own_version)
    yield _check_digests(ours)


def _check_ready(workloads: dict[str, Json]) -> Iterator[CheckLine]:
    """Check that what should run does."""
    lacking = []
    for name, item in sorted(workloads.items()):
        status = item.get("status") or {}
        daemons = status.get("desiredNumberScheduled")
        # Left out, it is one; zero is what an admin asked for.
        wanted = item["spec"].get("replicas", 1) if daemons is None else daemons
        ready = status.get("numberReady" if daemons is not None else "readyReplicas", 0)
        if ready < wanted:
            lacking.append(f"{name} ({ready} of {wanted})")
    if lacking:
        yield fail(
            "parts.ready",
            f"not ready: {', '.join(lacking)}",
            "check the pods with kubectl -n moorings-system describe, and their logs",
        )
    else:
        yield ok("parts.ready", f"all pods of {', '.join(sorted(workloads))} are ready")


def _check_agent_drivers(workloads: Mapping[str, Json]) -> Iterator[CheckLine]:
    """Check that solver and publisher take devices of the same drivers from agents."""
    drivers = {
        part: _read_variable(workloads[part], f"{part.upper()}_AGENT_DRIVERS")
        for part in ("publisher", "solver")
        if part in workloads
    }
    read = {
        part: frozenset(filter(None, said.split(","))) for part, said in drivers.items()
    }
    if len(set(read.values())) > 1:
        said = " and ".join(f"{part} {text or 'any'}" for part, text in drivers.items())
        yield fail(
            "parts.agent-drivers",
            f"node agents speak for different drivers: {said}",
            "set PUBLISHER_AGENT_DRIVERS and SOLVER_AGENT_DRIVERS alike",
        )


def _read_variable(workload: Json, name: str) -> str:
    """Read an environment variable of a workload; empty: not set there."""
    for container in workload["spec"]["template"]["spec"]["containers"]:
        for variable in container.get("env") or ():
            if variable["name"] == name:
                return str(variable.get("value") or "").replace(" ", "")
    return ""


def _check_images(workloads: dict[str, Json], own_version: str) -> CheckLine:
    """Check that all services run one version, and this command the same."""
    name = "parts.versions"
    images: defaultdict[str, list[str]] = defaultdict(list)
    for part, image in _list_images(workloads):
        if part != "nats":
            images[image].append(part)
    listed = [f"{image} ({', '.join(sorted(p))})" for image, p in images.items()]
    if len(images) > 1:
        return warn(
            name,
            f"services run different images: {name_some(listed)}",
            "let the upgrade finish (kubectl rollout status), or apply k8s/site again",
        )
    if not images:
        return warn(name, "no service is installed", "kubectl apply -k k8s/site")
    (image,) = images
    tag = image.rpartition("/")[2].partition("@")[0].partition(":")[2]
    if tag and not tag.startswith(own_version):
        return warn(
            name,
            f"services run {image}, this command is {own_version}",
            "use the command of that version, or upgrade",
        )
    return ok(name, f"services run {image}, this command is {own_version}")


def _check_digests(workloads: dict[str, Json]) -> CheckLine:
    """Check that nobody changes what runs by moving a tag."""
    name = "parts.images"
    tagged = {image for _, image in _list_images(workloads) if "@" not in image}
    if tagged:
        return warn(
            name,
            f"named by tag, which may be moved to other images: {name_some(tagged)}",
            "name them by digest, too, under images in k8s/site/kustomization.yaml",
        )
    return ok(name, "images are named by digest")


def _list_images(workloads: dict[str, Json]) -> Iterator[tuple[str, str]]:
    """List parts, each with the images of its containers."""
    for part, item in workloads.items():
        for container in item["spec"]["template"]["spec"]["containers"]:
            yield part, str(container["image"])


def _check_kubelets(nodes: tuple[Json, ...], server_version: str) -> CheckLine:
    name = "parts.kubelets"
    server = _MINOR.match(server_version)
    unfit, versions = [], set()
    for node in nodes:
        said = _node_info(node).get("kubeletVersion") or ""
        kubelet = _MINOR.match(said)
        if kubelet is None or server is None:
            continue
        versions.add(said)
        skew = int(server[2]) - int(kubelet[2])
        if not 0 <= skew <= _MOST_SKEW or int(kubelet[2]) < _OLDEST_KUBELET:
            unfit.append(f"{node['metadata']['name']} {said}")
    if unfit:
        return fail(
            name,
            f"kubelets incompatible with the API server ({server_version}) or "
            f"without resource.k8s.io/v1: {name_some(unfit)}",
            "upgrade these nodes to 1.34 or newer",
        )
    return ok(name, f"kubelets: {', '.join(sorted(versions)) or 'none says'}")


def _check_runtimes(nodes: tuple[Json, ...]) -> Iterator[CheckLine]:
    """Check that containers can be given devices by CDI."""
    old = []
    for node in nodes:
        said = _node_info(node).get("containerRuntimeVersion") or ""
        found = _RUNTIME.match(said)
        if found and (int(found[1]), int(found[2])) < _FIRST_CDI:
            old.append(f"{node['metadata']['name']} {said}")
    if old:
        yield fail(
            "parts.runtimes",
            f"no CDI, so containers get no devices: {name_some(old)}",
            "use containerd 2, or 1.7 with enable_cdi = true",
        )


def _node_info(node: Json) -> Json:
    return (node.get("status") or {}).get("nodeInfo") or {}


def check_lease(facts: ClusterFacts, now: datetime) -> CheckLine:
    """Check that a publisher leads, by its Lease; `now` is the API server's."""
    name, lease = "parts.publisher", facts.publisher_lease
    if isinstance(lease, Unread):
        return unread(name, lease)
    holder, since = find_leader(() if lease is None else (lease,), now)
    if holder:
        return ok(name, f"{holder} leads")
    return fail(
        name,
        f"no publisher leads (Lease last renewed: {since or 'never'}): pods at the "
        "gate wait",
        "check kubectl -n moorings-system rollout status deployment/publisher, "
        "and its log",
    )


def check_leader(facts: BusFacts, now: datetime) -> Iterator[CheckLine]:
    """Check that a publisher says on the bus that it leads; without a cluster none."""
    name, leader = "parts.publisher-on-bus", facts.leader
    if isinstance(leader, Unread):
        yield unread(name, leader)
    elif leader is not None:
        silent_s = (now - _parse_time(leader.at)).total_seconds()
        if silent_s < SILENT_S:
            yield ok(name, f"{leader.holder} leads")
        else:
            yield fail(
                name,
                f"{leader.holder} was last heard from at {leader.at}",
                "start a publisher on this bus",
            )


def check_solver(facts: BusFacts, now_s: float) -> CheckLine:
    """Check that a solver leads, by its fence; `now_s` is the server's clock."""
    name, seen = "parts.solver-on-bus", facts.solver
    if isinstance(seen, Unread):
        return unread(name, seen)
    now = datetime.fromtimestamp(now_s, UTC)
    if why := describe_no_solver(facts.cluster, seen, now):
        return fail(name, why, "start a solver on this bus, or check its log")
    return ok(name, f"{seen.claim.holder if seen else 'a solver'} leads")


def check_decisions(facts: BusFacts, now_s: float) -> CheckLine:
    """Check that a solver that leads decides; `now_s` is the server's clock.

    A submission that cannot be allocated has a decision all the same, the reason.
    """
    name, oldest = "parts.decisions", facts.undecided
    if isinstance(oldest, Unread):
        return unread(name, oldest)
    if oldest is None:
        return ok(name, "every gang that was submitted has a decision")
    gang = f"gang {oldest.key}"
    waited_s = max(0, round(now_s - oldest.at_s))
    if waited_s <= _DECIDED_S:
        return ok(name, f"{gang} waits for its first decision for {waited_s} s")
    return warn(
        name,
        f"{gang} waits for its first decision for {waited_s} s",
        "look at the solver's log; restart the solver if it says nothing",
    )


def _parse_time(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return datetime.min.replace(tzinfo=UTC)
