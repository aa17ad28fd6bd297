"""Observations of a cluster and a bus, not judged yet.

Objects of Kubernetes are as the API server serves them. What could not be read is
`Unread`: a check says so, and never takes it for an answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias, TypeVar

from msgspec import Struct

from contracts.fence import SolverSeen
from contracts.ids import ClusterName, NodeName
from contracts.lifecycle import SubmissionSeen
from contracts.liveness import PublisherLeads
from contracts.messages import DevicesAnnounced
from runtime.bus.streams import StreamHealth

T = TypeVar("T")
LOCAL_STACK = "the local stack"
"""Name of the bus of `moorings up`, which is checked where no server is given."""
Json = Mapping[str, Any]


class Unread(Struct, frozen=True):
    """Something that could not be read, and why."""

    why: str
    remedy: str = ""
    """How it could be; empty: by a right to read it."""


Reading: TypeAlias = T | Unread


class Clock(Struct, frozen=True):
    """How far our clock is ahead of another, in seconds, and how exactly that is."""

    ahead_s: float
    within_s: float

    @classmethod
    def compare(
        cls, asked_s: float, theirs_s: float, answered_s: float, exact_s: float = 0.0
    ) -> Clock:
        """Compare our clock to one that was read between two readings of ours.

        `exact_s`: how exactly the other was read.
        """
        return cls(
            ahead_s=(asked_s + answered_s) / 2 - theirs_s,
            within_s=(answered_s - asked_s) / 2 + exact_s,
        )

    @property
    def least_s(self) -> float:
        """By how much the clocks differ at the least."""
        return max(0.0, abs(self.ahead_s) - self.within_s)


class Right(Struct, frozen=True, order=True):
    """A rule of RBAC, as a SubjectAccessReview asks for it."""

    verb: str
    group: str
    """Empty: the core group."""
    resource: str
    """With its subresource: `pods/log`."""
    namespace: str = ""
    """Empty: everywhere."""
    name: str = ""
    """Empty: any."""

    def __str__(self) -> str:
        what = f"{self.resource}.{self.group}".rstrip(".")
        named = f" {self.name}" if self.name else ""
        where = f" in {self.namespace}" if self.namespace else ""
        return f"{self.verb} {what}{named}{where}"


class Review(Struct, frozen=True, kw_only=True):
    """The API server's answer whether a persona has a right."""

    persona: str
    right: Right
    allowed: bool


class ClusterFacts(Struct, frozen=True, kw_only=True):
    """A cluster as its API server shows it."""

    server: str
    version: str
    """Of the API server, such as `v1.37.1`."""
    release: str
    """Such as `1.37`, the emulated one where there is one; empty: it does not say."""
    served: Reading[Mapping[str, frozenset[str]]]
    """The plurals that resource.k8s.io serves, by version."""
    gang_served: Reading[bool]
    gates: Reading[Mapping[str, bool]]
    """The feature gates of the API server."""
    clock: Clock
    reviews: Reading[tuple[Review, ...]]
    """Of the services' personas."""
    own_reviews: Reading[tuple[Review, ...]]
    """Of the user of the kubeconfig, for the roles of people."""
    admission: Reading[tuple[Json, ...]]
    """Policies and webhooks, each with its kind."""
    nodes: Reading[tuple[Json, ...]]
    slices: Reading[tuple[Json, ...]]
    claims: Reading[tuple[Json, ...]]
    control_plane: Reading[tuple[Json, ...]]
    """The Pods of kube-system."""
    scheduler_config: Json | None
    """A KubeSchedulerConfiguration; None: not given."""
    workloads: Reading[tuple[Json, ...]]
    """Deployments, StatefulSets and DaemonSets where Moorings is installed."""
    publisher_lease: Reading[Json] | None
    """None: there is none."""
    node_leases: Reading[tuple[Json, ...]]
    """By which kubelets say that they are there, with their own clocks."""


class ServerMonitor(Struct, frozen=True, kw_only=True):
    """A nats-server's report on its monitoring port."""

    failure: str = ""
    """Why it is not healthy, in its words; empty: it is."""

    sync: str
    """How often it syncs to disk, such as `always` or `2m0s`."""
    max_payload: int
    """Bytes."""
    room_bytes: int
    """Of its disk, for all streams."""


class BusFacts(Struct, frozen=True, kw_only=True):
    """A bus as one of its users sees it."""

    server: str
    version: str
    """Of nats-server."""
    streams: Mapping[str, Reading[StreamHealth]]
    """By name, for each that Moorings needs."""
    clock: Reading[Clock]
    monitor: Reading[ServerMonitor]
    inventories: Reading[Mapping[NodeName, DevicesAnnounced]]
    heard: Reading[frozenset[str]]
    """Nodes whose agents were heard from in the last seconds."""
    said: Mapping[NodeName, float]
    """What nodes say of their devices, in messages a second."""
    leader: Reading[PublisherLeads | None]
    cluster: ClusterName
    """The cluster whose gangs are read."""
    solver: Reading[SolverSeen | None]
    """That led last there; None: none ever did."""
    undecided: Reading[SubmissionSeen | None]
    """The submission that has no decision for longest; None: all have one."""
