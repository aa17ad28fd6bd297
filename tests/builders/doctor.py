"""A cluster and a bus with which nothing is wrong; a test changes what it is about."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from contracts.features import default_gates
from contracts.fence import EpochClaimed, SolverSeen
from contracts.ids import ClusterName
from contracts.streams import SETTINGS_VERSION, STREAMS
from moorings.doctor.facts import BusFacts, Clock, ClusterFacts, Review, ServerMonitor
from moorings.doctor.findings import CheckLine
from moorings.doctor.rights import ACCOUNTS, FORBIDDEN, PEOPLE, SERVICES
from runtime.bus.streams import StreamHealth
from tests.lab.controlplane import objects

NOW_S = 1_800_000_000.0
DIGEST = f"@sha256:{'0' * 64}"
RESOURCES = frozenset(
    (
        "deviceclasses",
        "devicetaintrules",
        "resourceclaims",
        "resourceclaimtemplates",
        "resourceslices",
    )
)
HEALTH = StreamHealth(
    replicas=3,
    lagging=(),
    led=True,
    version=SETTINGS_VERSION,
    different=(),
    share=0.1,
    time_s=NOW_S,
)


def reviews() -> tuple[Review, ...]:
    """All that services must be allowed, and all that they must not."""
    must = [
        Review(persona=one.name, right=right, allowed=True)
        for one in SERVICES
        for right in one.list_rights("s", "s")
    ]
    must_not = [
        Review(persona=account, right=right, allowed=False)
        for account in ACCOUNTS
        for right in FORBIDDEN
    ]
    return (*must, *must_not)


def own_reviews(*roles: str) -> tuple[Review, ...]:
    """Be in these roles."""
    return tuple(
        Review(persona=one.name, right=right, allowed=one.name in roles)
        for one in PEOPLE
        for right in one.list_rights("s", "n")
    )


def control_plane_pod(component: str, *flags: str) -> dict[str, Any]:
    """Make the Pod of a component, as kubeadm does."""
    pod = objects.pod("kube-system", component, labels={"component": component})
    pod["spec"]["containers"][0]["command"] = [component, *flags]
    return pod


def workload(
    name: str, image: str = f"moorings:0.1.0{DIGEST}", ready: int = 2
) -> dict[str, Any]:
    """Make a Deployment of two."""
    template = {"spec": {"containers": [{"name": name, "image": image}]}}
    return {
        "metadata": {"name": name},
        "spec": {"replicas": 2, "template": template},
        "status": {"readyReplicas": ready},
    }


def cluster_facts(**changes: Any) -> ClusterFacts:
    """Make a cluster that is fine."""
    fine: dict[str, Any] = {
        "server": "https://api",
        "version": "v1.37.1",
        "release": "1.37",
        "served": {"v1": RESOURCES},
        "gang_served": True,
        "gates": default_gates("1.37"),
        "clock": Clock(0.1, 0.6),
        "reviews": reviews(),
        "own_reviews": own_reviews(),
        "nodes": (),
        "slices": (),
        "claims": (),
        "control_plane": (
            control_plane_pod(
                "kube-controller-manager", "--kube-api-qps=75", "--kube-api-burst=150"
            ),
            control_plane_pod("kube-scheduler"),
        ),
        "scheduler_config": None,
        "admission": (),
        "workloads": tuple(map(workload, ("nats", "publisher", "solver"))),
        "publisher_lease": {
            "metadata": {"name": "moorings-publisher"},
            "spec": {
                "holderIdentity": "p-1",
                "renewTime": "2027-01-15T08:00:00.000000Z",
                "leaseDurationSeconds": 15,
            },
        },
        "node_leases": (),
    }
    return ClusterFacts(**{**fine, **changes})


def bus_facts(**changes: Any) -> BusFacts:
    """Make a bus that is fine."""
    fine: dict[str, Any] = {
        "server": "nats://bus",
        "version": "2.15.1",
        "streams": {stream.name: HEALTH for stream in STREAMS},
        "clock": Clock(0.0, 0.1),
        "monitor": ServerMonitor(
            sync="always", max_payload=8 << 20, room_bytes=18 << 30
        ),
        "inventories": {},
        "heard": frozenset(),
        "said": {},
        "leader": None,
        "cluster": ClusterName("local"),
        "solver": solver_seen(NOW_S - 1),
        "undecided": None,
    }
    return BusFacts(**{**fine, **changes})


def solver_seen(at_s: float, lease_s: float = 15.0) -> SolverSeen:
    """Make a solver that claimed its epoch at this time."""
    claim = EpochClaimed(
        cluster=ClusterName("local"), epoch=1, holder="s-1", lease_s=lease_s
    )
    return SolverSeen(claim=claim, at_s=at_s)


def worst(lines: Iterable[CheckLine]) -> dict[str, CheckLine]:
    """Return the lines that are not ok, by check."""
    return {line.check: line for line in lines if line.level != "ok"}
