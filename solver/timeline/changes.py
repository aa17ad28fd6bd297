"""What is the least that would let a gang in: of each kind of change a smallest one.

Found by solving and checked by solving again: with the change the gang is in, with any
part of it left out it is not. Counting says where to look first. All is asked of a
Problem, so that what was recorded can be asked as well as what is. Quota and time are
no part of one; see `cluster_changes.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct, structs

from contracts.counts import counted, listed
from contracts.ids import GangKey, NodeName
from contracts.messages import NodesLacking
from contracts.names import UNHEALTHY
from solver.devices.candidates import select_projected
from solver.devices.pool_projections import find_distinct_pools
from solver.problem.gangs import GangPart, MemberPart
from solver.problem.problem import Problem
from solver.snapshot.node_state import add_amounts
from solver.snapshot.parts import NodePart, UsePart
from solver.tiers import Tier
from solver.timeline.altered import (
    MOST_NODES,
    healed,
    with_ended,
    with_gang,
    with_nodes,
    with_pods,
)
from solver.timeline.asking import Asking, read_fit
from solver.timeline.candidates import Candidate
from solver.timeline.counting import Counts, NodeRoom, Region, count_room
from solver.timeline.holdings import Holding
from solver.timeline.quota_raises import Raises
from solver.timeline.shapes import describe_node, describe_pod
from solver.timeline.terms import list_terms
from solver.timeline.victims import VictimSearch

MOST_MODELS = 4
"""Nodes that added ones are tried to be like."""
MOST_LACKING = 8
"""Members that are named of which no node could hold a pod."""


class SmallestChange(Struct, frozen=True, kw_only=True):
    """One change, and whether it lets the gang in."""

    sort: str
    """`heal`, `end`, `nodes`, `fewer`, `relax`, `quota` or `wait`."""
    text: str
    """What would be so, for people."""
    helps: bool
    heal: bool = False
    end: tuple[GangKey, ...] = ()
    nodes: int = 0
    like: NodeName = NodeName("")
    pods: Mapping[str, int] = {}
    """By member."""
    without: str = ""
    """Path of a term of the gang."""
    quotas: Raises = ()
    start_s: int | None = None
    """It waits until then: seconds since the epoch."""
    proven: bool = False
    """True if it can start no earlier, by what is known."""


Answers = Asking[list[SmallestChange]]


class ChangeSearch:
    """Looks for changes of one Problem that let one of its gangs in."""

    def __init__(
        self,
        problem: Problem,
        gang: GangKey,
        candidates: Iterable[Candidate],
        holdings: Mapping[GangKey, Holding],
        now_s: float,
    ) -> None:
        """Prepare a search.

        `candidates`: who may end for the gang; `holdings`: what all gangs hold.
        """
        parameters = structs.replace(problem.parameters, last_tier=Tier.GANGS)
        self._problem = Problem(
            problem.pages,
            problem.gangs,
            problem.selectors,
            parameters,
            neighbours=problem.neighbours,
            quotas=problem.quotas,
        )
        (self._gang,) = (each for each in problem.gangs if each.key == gang)
        self._candidates, self._holdings = tuple(candidates), holdings
        self._now_s = now_s

    def searches(self) -> Iterator[Answers]:
        """Go through the kinds of change, those that cost least first."""
        if self._gang.refused:
            return
        yield self._find_healing()
        yield self._find_victims()
        yield self._find_nodes()
        for member in sorted(self._gang.members, key=lambda m: (-m.count, m.name)):
            if member.least > 1:
                yield self._find_fewer(member.name)
        yield self._find_terms()

    def _fits(self, problem: Problem) -> Asking[bool]:
        return bool(read_fit((yield problem), self._gang.key))

    def find_lacking(self) -> Asking[tuple[NodesLacking, ...]]:
        """Find nodes of one shape that would let the gang in, if it has no place.

        Else what its pods ask for that no node could hold.
        """
        if self._gang.refused or (yield from self._fits(self._problem)):
            return ()
        for change in (yield from self._find_nodes()):
            if not change.helps:
                return ()
            shape = describe_node(self._problem, change.like)
            return (NodesLacking(count=change.nodes, like=change.like, shape=shape),)
        lacking = [
            NodesLacking(
                count=member.least, shape=describe_pod(member), member=member.name
            )
            for member in self._gang.members
            if member.least and not member.node_name and not self._has_node(member)
        ]
        return tuple(lacking[:MOST_LACKING])

    def _has_node(self, member: MemberPart) -> bool:
        """True if some node could hold a pod of a member, with all devices free."""
        alone = structs.replace(self._gang, members=(member,), topology=())
        return bool(count_room(self._problem, alone, self._all_held).regions)

    @property
    def _all_held(self) -> list[Holding]:
        return list(self._holdings.values())

    # --- the cluster ------------------------------------------------------------------

    def _find_healing(self) -> Answers:
        sick = count_sick(self._problem)
        if not sick:
            return []
        helps = yield from self._fits(healed(self._problem))
        text = f"{sick} well again"
        return [SmallestChange(sort="heal", text=text, helps=helps, heal=True)]

    def _find_victims(self) -> Answers:
        if not self._candidates:
            return []

        def question(ended: Iterable[Candidate]) -> Problem:
            keys = {each.record.key for each in ended}
            # Who was decided in the same batch held nothing before.
            others = (gang for gang in self._problem.gangs if gang.key not in keys)
            freed = with_ended(self._problem, (self._holdings[key] for key in keys))
            return freed.with_gangs(tuple(others))

        search = VictimSearch(
            question, self._gang.key, self._candidates, self._holdings, self._now_s
        )
        found = yield from search.run()
        if not found:
            text = "all gangs of lower priority end"
            return [_no("end", text, end=[e.record.key for e in self._candidates])]
        if not found.victims:
            return []
        names = [f"{each.name[0]}/{each.name[1]}" for each in found.victims]
        devices = sum(each.devices for each in found.victims)
        words = "gang {} ends (it holds {})" if len(names) == 1 else _SEVERAL
        return [
            SmallestChange(
                sort="end",
                text=words.format(listed(names), counted(devices, "device")),
                helps=True,
                end=tuple(each.record.key for each in found.victims),
            )
        ]

    def _find_nodes(self) -> Answers:
        """Find the fewest nodes like one of those that there are."""
        models = self._list_models()
        best = MOST_NODES + 1
        chosen: NodeName | None = None
        for least, like in models:
            count = yield from self._count_nodes(like, least, best)
            if count < best:
                best, chosen = count, like
        if chosen is None:
            if not models:
                return []
            text = f"{counted(MOST_NODES, 'more node')} like {models[0][1]}"
            return [_no("nodes", text, nodes=MOST_NODES, like=models[0][1])]
        text = f"{counted(best, 'more node')} like {chosen}"
        return [
            SmallestChange(sort="nodes", text=text, helps=True, nodes=best, like=chosen)
        ]

    def _count_nodes(self, like: NodeName, least: int, best: int) -> Asking[int]:
        """Count the nodes that are enough, if they are fewer than `best`."""
        used = dict[str, int]()
        for holding in self._holdings.values():
            add_amounts(used, holding.amounts.get(like, {}))

        def ask(count: int) -> Asking[bool]:
            return self._fits(with_nodes(self._problem, like, count, used))

        if least >= best:
            return best
        # First up, twice as many each time, to a number that is enough ...
        short, count = 0, least
        while not (yield from ask(count)):
            if count >= best - 1:
                return best
            short, count = count, min(2 * count, best - 1)
        # ... then down to the fewest. That one fewer is not enough is asked, not only
        # counted.
        if not short and count > 1 and not (yield from ask(count - 1)):
            return count
        while count - short > 1:
            middle = (short + count) // 2
            if (yield from ask(middle)):
                count = middle
            else:
                short = middle
        return count

    def _list_models(self) -> list[tuple[int, NodeName]]:
        """List nodes that added ones may be like, with how many are needed at least."""
        now = count_room(self._problem, self._gang, ())
        then = count_room(self._problem, self._gang, self._all_held)
        room_now = {node.name: node for of in now.regions for node in of.nodes}
        models: dict[tuple[int, tuple[tuple[int, int], ...]], NodeName] = {}
        for region in then.regions:
            left = _count_left(now, region, room_now)
            for node in region.nodes:
                least = _count_missing(then, left, node)
                key = least, node.most
                if least <= MOST_NODES and node.name < models.get(key, "\uffff"):
                    models[key] = node.name
        ordered = sorted((least, like) for (least, _), like in models.items())
        return ordered[:MOST_MODELS]

    # --- the gang ---------------------------------------------------------------------

    def _find_fewer(self, name: str) -> Answers:
        """Find the most pods of a member that have a place."""
        (member,) = (each for each in self._gang.members if each.name == name)
        low, high = 0, member.least
        while high - low > 1:
            middle = (low + high) // 2
            if (yield from self._fits(self._with_pods(name, middle))):
                low = middle
            else:
                high = middle
        count = max(low, 1)
        text = f"{counted(count, 'pod')} of member {name} instead of {member.count}"
        pods = {name: count}
        if not low:
            return [_no("fewer", text, pods=pods)]
        return [SmallestChange(sort="fewer", text=text, helps=True, pods=pods)]

    def _with_pods(self, name: str, count: int) -> Problem:
        return with_gang(self._problem, with_pods(self._gang, {name: count}))

    def _find_terms(self) -> Answers:
        """Try to do without each term alone."""
        found = []
        for term in list_terms(self._gang):
            if not _knows_devices(self._problem, term.without):
                continue
            changed = with_gang(self._problem, term.without)
            helps = yield from self._fits(changed)
            text = f"without {term.text}"
            found.append(
                SmallestChange(sort="relax", text=text, helps=helps, without=term.path)
            )
        return found


def _knows_devices(problem: Problem, gang: GangPart) -> bool:
    """True if the Problem has the verdicts on all devices that a gang would mean.

    Those on devices that another selector had excluded were not recorded.
    """
    lists = {
        alternative.selectors
        for member in gang.members
        for claim in member.claims
        for request in claim.requests
        for alternative in request.alternatives
    }
    return not any(
        select_projected(pools, selectors, problem.selectors).missing
        for selectors in sorted(lists)
        for page in problem.pages
        for pools in find_distinct_pools(page, selectors)
    )


_SEVERAL = "gangs {} end (they hold {})"


def _no(
    sort: str,
    text: str,
    *,
    end: Iterable[GangKey] = (),
    nodes: int = 0,
    like: str = "",
    pods: Mapping[str, int] | None = None,
) -> SmallestChange:
    """Return the largest change of a kind: not even that is enough."""
    return SmallestChange(
        sort=sort,
        text=text,
        helps=False,
        end=tuple(end),
        nodes=nodes,
        like=NodeName(like),
        pods=pods or {},
    )


def _count_left(
    counts: Counts, region: Region, room: Mapping[NodeName, NodeRoom]
) -> list[int]:
    """Count the pods of each kind that the nodes of a region have room for now."""
    left = [0] * len(counts.pods)
    for name in (node.name for node in region.nodes):
        node = room.get(name)
        if node is None:
            continue
        for kind, most in node.most:
            limits = [(dict(limit.needs).get(kind), limit) for limit in node.limits]
            bounds = [max(limit.left, 0) // need for need, limit in limits if need]
            left[kind] += min([most, *bounds])
    return left


def _count_missing(counts: Counts, left: list[int], node: NodeRoom) -> int:
    """Count how many empty nodes like one are needed at least."""
    most, needed = dict(node.most), 1
    for kind, pods in enumerate(counts.pods):
        if pods > left[kind]:
            if not most.get(kind):
                return MOST_NODES + 1
            needed = max(needed, -(-(pods - left[kind]) // most[kind]))
    return needed


def count_sick(problem: Problem) -> str:
    """Write how many devices are unhealthy, and how many nodes are silent."""
    devices = nodes = 0
    for page in problem.pages:
        for part in page.parts():
            match part.value:
                case UsePart(taints=taints):
                    devices += sum(taint.key == UNHEALTHY for _, taint in taints)
                case NodePart(unavailable=unavailable):
                    nodes += bool(unavailable)
                case _:
                    pass
    sick = ((devices, "unhealthy device"), (nodes, "silent node"))
    words = [counted(count, noun) for count, noun in sick if count]
    verb = "is" if devices + nodes == 1 else "are"
    return f"{listed(words)} {verb}" if words else ""
