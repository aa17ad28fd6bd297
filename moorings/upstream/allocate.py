"""Gang by gang, pod by pod, node by node: what kube-scheduler would do on its own.

For comparison and conformance, not for deciding well: pods one after the other, nodes
by name, first fit, never revisited.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import structs

from contracts.allocation import Reason, Rule
from contracts.ids import NodeName, PoolID
from contracts.messages import MemberAllocated
from contracts.pods.node_resources import PODS
from moorings.upstream.search import STEPS, Search
from moorings.upstream.world import World
from solver.decision import Decision, GangDecision, Statistics, Status
from solver.devices.gather import Cluster, NodePools
from solver.devices.pools import PoolView
from solver.engines.taking import with_result
from solver.errors import AbortedError, FatalError, ResultError, StepsSpentError
from solver.kinds.affinity.resolve import resolve_affinity
from solver.kinds.node_fit import fit_of, is_fit, left_of, need_of
from solver.kinds.sharing import SharedClaimLayouts
from solver.placement import GangPlacement, PodPlacement
from solver.problem.gang_refusals import find_unmodelled
from solver.problem.gangs import GangPart, MemberPart
from solver.problem.problem import Problem
from solver.results import Results
from solver.snapshot.parts import NodePart, UsePart


def allocate_upstream(
    problem: Problem, expired: Callable[[], bool] = lambda: False
) -> Decision:
    """Decide as kube-scheduler would, gang by gang in the order of the Problem.

    `expired` says when the caller's time is over, as a context does.
    """
    settled = resolve_affinity(problem)
    scheduler = _Scheduler(settled, expired)
    decisions = [scheduler.decide(gang) for gang in settled.gangs]
    return Decision(
        problem=problem.hash,
        status=Status.NOT_PROVEN if scheduler.gave_up else Status.FEASIBLE,
        objective=(),
        gangs=tuple(decisions),
        statistics=Statistics(),
    )


class _Scheduler:
    """Places pods and remembers what they took."""

    def __init__(self, problem: Problem, expired: Callable[[], bool]) -> None:
        self._problem = problem
        self._expired = expired
        features = problem.parameters.features
        self._cluster = Cluster(problem.pages, features)
        self._results = Results(problem, self._cluster, narrow=False)
        self._layouts = SharedClaimLayouts(problem)
        self._uses: dict[PoolID, UsePart] = {}
        """Use of pools by the pods placed so far."""
        self._needs: dict[NodeName, dict[str, int]] = {}
        """Resources that the pods placed so far need of their nodes."""
        self.gave_up = False
        """True if a search ended without an answer."""

    def decide(self, gang: GangPart) -> GangDecision:
        """Place one gang, or tell why kube-scheduler would not."""
        undecided = GangDecision(uid=gang.uid, namespace=gang.namespace, name=gang.name)
        if gang.refused:
            return structs.replace(undecided, reasons=gang.refused, failed=True)
        unmodelled = find_unmodelled(gang, self._problem)
        if unmodelled is not None:
            return structs.replace(undecided, reasons=(unmodelled,), failed=True)
        if any(m.resolved.takes or m.resolved.roles for m in gang.members):
            message = "rules between pods are not decided in this order"
            reason = Reason(rule=Rule.NOT_MODELLED, message=message)
            return structs.replace(undecided, reasons=(reason,), failed=True)
        whole = self._layouts.as_decided(gang)
        if gang.constraints or gang.topology or whole.separated:
            message = "rules of whole gangs are not decided in this order"
            if whole.separated:
                message = (
                    "claims of pods on several nodes are not decided in this order"
                )
            reason = Reason(rule=Rule.NOT_MODELLED, message=message)
            return structs.replace(undecided, reasons=(reason,), failed=True)
        try:
            members = self._place_gang(gang, whole)
        except (FatalError, ResultError) as error:
            node_only = isinstance(error, FatalError) and error.node_only
            facts = {"nodeOnly": 1} if node_only else {}
            reason = Reason(rule=Rule.INVALID, message=str(error), facts=facts)
            return structs.replace(undecided, reasons=(reason,), failed=True)
        except AbortedError as error:
            facts = {"aborted": 1}
            reason = Reason(rule=Rule.NOT_PROVEN, message=str(error), facts=facts)
            return structs.replace(undecided, reasons=(reason,), failed=True)
        except StepsSpentError:
            self.gave_up = True
            message = f"no answer within {STEPS} steps"
            reason = Reason(rule=Rule.NOT_PROVEN, message=message)
            return structs.replace(undecided, reasons=(reason,))
        if members is None:
            message = "kube-scheduler's order finds no devices on any node"
            reason = Reason(rule=Rule.NO_CANDIDATE, message=message)
            return structs.replace(undecided, reasons=(reason,))
        return structs.replace(undecided, members=members)

    def _place_gang(
        self, gang: GangPart, whole: GangPart
    ) -> tuple[MemberAllocated, ...] | None:
        """Place the pods of a gang, one after the other; None: too few find a node.

        Nothing is taken then. `whole`: the gang with pods that share a claim as one.
        """
        uses_before, needs_before = dict(self._uses), dict(self._needs)
        members, placed = list[MemberAllocated](), list[tuple[PodPlacement, ...]]()
        for member in whole.members:
            pods = list[PodPlacement]()
            for index in range(member.count):
                pod = self._place_pod(whole, member)
                if pod is None and index >= member.least:
                    break
                if pod is None:
                    self._uses, self._needs = uses_before, needs_before
                    return None
                allocated = self._results.of_pod(whole, member, index, pod)
                self._take_devices(allocated)
                self._needs[pod.node] = self._needs_with_pod(pod.node, member)
                members.append(allocated)
                pods.append(pod)
            placed.append(tuple(pods))
        if whole is gang:
            return tuple(members)
        joined = self._layouts.join(gang, GangPlacement(0, tuple(placed)))
        return self._results.of_gang(gang, joined)

    def _place_pod(self, gang: GangPart, member: MemberPart) -> PodPlacement | None:
        """Place a pod on the first node that serves it.

        Raises:
            FatalError: what aborts the attempt, or no node serves it and one could not
                be asked.
        """
        refusal: FatalError | None = None
        for node in self._nodes_for(member):
            if node.error:
                raise FatalError(node.error)
            world = World(self._problem, gang.namespace, self._with_uses(node))
            try:
                search = Search(self._problem, world, member, self._expired)
                if search.run():
                    return _pod_placement(search, world, member)
            except FatalError as error:
                if not error.node_only:
                    raise
                refusal = error
        if refusal is not None:
            raise refusal
        return None

    def _nodes_for(self, member: MemberPart) -> list[NodePools]:
        """List the nodes that may serve a member, by name."""
        nodes, fit = self._cluster.nodes, fit_of(member)
        names = [member.node_name] if member.node_name else sorted(nodes)
        existing = [nodes[name] for name in names if name in nodes]
        return [
            node
            for node in existing
            if not node.node.unavailable
            and is_fit(fit, node.node)
            and self._has_room(node.node, member)
        ]

    def _has_room(self, node: NodePart, member: MemberPart) -> bool:
        """True if the node has enough left for one more pod."""
        needs = self._needs_with_pod(node.name, member)
        left = {name: left_of(node, name) for name in {PODS, *member.resources}}
        return all(
            amount is None or needs[name] <= amount for name, amount in left.items()
        )

    def _needs_with_pod(self, node: NodeName, member: MemberPart) -> dict[str, int]:
        """Add what one more pod needs to what the node's pods need."""
        needs = dict(self._needs.get(node, {}))
        for name in (PODS, *(n for n in member.resources if n != PODS)):
            needs[name] = needs.get(name, 0) + need_of(member, name)
        return needs

    def _with_uses(self, node: NodePools) -> NodePools:
        """Read a node's pools with what the pods placed so far took of them."""
        if not self._uses:
            return node
        pools = tuple(
            structs.replace(pool, use=self._uses.get(_pool_id(pool), pool.use))
            for pool in node.pools
        )
        return NodePools(node.node, pools)

    def _take_devices(self, member: MemberAllocated) -> None:
        """Count what a pod got as taken; admin access takes nothing."""
        node = self._cluster.nodes[member.node]
        uses = {_pool_id(pool): pool.use for pool in node.pools}
        for claim in member.claims:
            for result in claim.allocation.devices.results:
                if result.admin_access:
                    continue
                key = PoolID(result.driver, result.pool)
                use = self._uses.get(key) or uses[key]
                use = use or UsePart(driver=result.driver, pool=result.pool)
                self._uses[key] = with_result(use, result)


def _pool_id(pool: PoolView) -> PoolID:
    return PoolID(pool.driver, pool.pool)


def _pod_placement(search: Search, world: World, member: MemberPart) -> PodPlacement:
    requests = [
        search.chosen_request(claim_index, request_index)
        for claim_index, claim in enumerate(member.claims)
        for request_index in range(len(claim.requests))
    ]
    return PodPlacement(
        NodeName(world.node.name),
        tuple(
            tuple(
                world.devices[index].name
                for index in search.devices[request.claim][request.request]
            )
            for request in requests
        ),
        tuple(request.alternative for request in requests),
    )
