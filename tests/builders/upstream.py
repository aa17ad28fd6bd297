"""One pod before one node, as kube-scheduler's search looks at them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from msgspec import Struct, structs

from contracts.device import CounterSet, Device
from contracts.features import Features
from contracts.gang import MemberClaim
from contracts.ids import DeviceID, NodeName
from moorings.upstream.search import Search
from moorings.upstream.state import State
from moorings.upstream.world import Requests, World, check_requests
from solver.devices.gather import Cluster
from solver.problem.gangs import ClaimPart, MemberPart
from solver.problem.problem import Problem
from tests.builders.devices import pool
from tests.builders.gangs import gang, member
from tests.builders.problems import PARAMETERS, problem_of, snapshot_of
from tests.builders.values import NODE


class PodAtNode(Struct, frozen=True):
    """A pod that is to be placed on one node."""

    problem: Problem
    world: World
    member: MemberPart

    @property
    def claims(self) -> tuple[ClaimPart, ...]:
        """The claims of the pod."""
        return self.member.claims

    def requests(self) -> Requests:
        """Check the requests of the pod."""
        return check_requests(self.world, self.claims)

    def state(self) -> State:
        """Begin with nothing given out."""
        return State(self.world, self.claims)

    def search(self) -> Search:
        """Begin a search that is never out of time."""
        return Search(self.problem, self.world, self.member, lambda: False)


def pod_at_node(
    content: Sequence[Device],
    *claims: MemberClaim,
    taken: Iterable[DeviceID] = (),
    counters: Sequence[CounterSet] = (),
    **features: Any,
) -> PodAtNode:
    """Place a pod with these claims before a node with one pool of these devices."""
    snapshot = snapshot_of(
        {NODE: [pool(*content, counters=counters)]},
        [gang(member(*claims))],
        taken=taken,
    )
    parameters = structs.replace(PARAMETERS, features=Features(**features))
    problem = problem_of(snapshot, parameters)
    (asking,) = problem.gangs
    node = Cluster(problem.pages, parameters.features).nodes[NodeName(NODE)]
    world = World(problem, asking.namespace, node)
    return PodAtNode(problem, world, asking.members[0])
