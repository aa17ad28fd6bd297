"""Nodes while gangs are taken in one after the other, each whole or not at all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import partial

from msgspec import Struct

from solver.engines.construct.between import Between
from solver.engines.construct.choices import Choice, Choices
from solver.engines.construct.frame import Frame, FramePod
from solver.engines.construct.open_nodes import OpenNodes
from solver.engines.construct.stock import Stock
from solver.engines.construct.undo import UndoLog
from solver.engines.construct.ways import Style, Values, Way, Wish, find_way
from solver.kinds.demand import Demand
from solver.kinds.shapes import NodeKind, NodeView
from solver.kinds.topology import ClaimShared
from solver.placement import GangPlacement, PodPlacement

MOST_TRIES = 120
"""Options that are tried for one gang, over all that it has to choose."""
MOST_DEAD_ENDS = 3
"""How often what was chosen for some pods is chosen again for the sake of others."""


LOOKS = 16
"""So many nodes that are passed over count as one that is tried."""


class WantedPods(Struct, frozen=True):
    """Pods that are to be placed."""

    member: int
    kind: int
    count: int


class Begun(Struct, frozen=True):
    """What a filling was like when something began."""

    mark: int
    frames: dict[int, Frame]
    full: frozenset[int]


class Filling:
    """One answer while it is made; `steps` are left to make it."""

    def __init__(self, demand: Demand, kinds: Sequence[NodeKind], steps: int) -> None:
        self._demand = demand
        self._style = Style()
        self._ledger = UndoLog()
        self._places = OpenNodes(demand, kinds, self._ledger)
        self.views: tuple[NodeView, ...] = self._places.views
        self._stock = Stock(demand.member_kinds, self.views, self._ledger)
        self._between = Between(demand, self.views, self._ledger)
        self._choices = Choices(demand, self._places, self._between, self._stock)
        self._rules_of = {rules.gang: rules for rules in demand.gang_rules}
        self._full: set[int] = set()
        """Kinds of pod without rules beyond a node for which there is no room."""
        self._misfits: set[tuple[int, int | None, tuple[Values | None, ...]]] = set()
        """(kind of pod, look of a node, values in common) that have no way."""
        self.steps = steps
        self.frames: dict[int, Frame] = {}
        """Of the gangs that are in."""
        self._tries = self._dead_ends = 0

    def begin(self, style: Style) -> Begun:
        """Begin to place gangs, so that all that follows can be taken back."""
        self._style = style
        return Begun(self._ledger.mark, dict(self.frames), frozenset(self._full))

    def take_back(self, begun: Begun) -> None:
        """Take away what was placed since then."""
        self._ledger.undo(begun.mark)
        self.frames, self._full = begun.frames, set(begun.full)

    def count_free(self) -> int:
        """Count the devices that nobody has."""
        return sum(map(self._stock.count_free, range(len(self.views))))

    def keep(self, placements: Sequence[GangPlacement]) -> None:
        """Begin with gangs that have their place already."""
        self._places.begin_with(
            pod.node for item in placements for pods in item.members for pod in pods
        )
        for item in placements:
            frame = Frame(self._demand, item.gang, self._rules_of.get(item.gang))
            kinds = self._demand.kinds_of_pods(item.gang)
            members = enumerate(zip(kinds, item.members, strict=True))
            # Claims come after the pods that share them, as members do.
            for member, (of_member, pods) in members:
                for kind, pod in zip(of_member, pods, strict=False):
                    self._keep_pod(frame, WantedPods(member, kind, 1), pod)
            self.frames[item.gang] = frame

    def _keep_pod(self, frame: Frame, want: WantedPods, pod: PodPlacement) -> None:
        node = self._places.find(pod.node)
        view, member = self.views[node], self._demand.member_kinds[want.kind]
        groups = {
            device: number
            for number, group in enumerate(view.groups)
            for device in group.devices
        }
        uses = tuple(
            (member.alternatives(request)[pod.alternatives[request]], groups[device])
            for request, devices in enumerate(pod.devices)
            for device in devices
        )
        values: list[Values | None] = []
        for condition in frame.list_conditions(want.kind):
            value = condition.start
            for ask, group in uses:
                value = condition.after(value, ask, view.shape.groups[group])
            values.append(value)
        for number, group in uses:
            if not member.asks[number].admin:
                self._stock.take(node, group, member.asks[number])
        self._between.add(want.kind, node)
        self._stock.take_resources(node, want.kind)
        way = Way(uses, pod.alternatives, tuple(values))
        kept = FramePod(want.member, want.kind, node, uses, pod.alternatives)
        frame.add(kept, view.shape, way)

    def place(self, gang: int) -> bool:
        """Place a gang with as few pods as it may have, if there is room."""
        wanted = self._list_wanted(gang)
        kinds = [want.kind for want in wanted]
        if self.steps <= 0 or any(
            self._places.count_room(want.kind, None, None) < want.count
            for want in wanted
        ):
            return False
        needs_others = any(self._between.needs_others(kind) for kind in kinds)
        for strict in (True, False) if needs_others else (True,):
            frame = Frame(self._demand, gang, self._rules_of.get(gang))
            mark = self._ledger.mark
            self._tries, self._dead_ends = MOST_TRIES, MOST_DEAD_ENDS
            choices = self._choices.list_of(frame, kinds)
            if self._place(frame, wanted, choices, strict=strict) and self._hold():
                self.frames[gang] = frame
                return True
            self._ledger.undo(mark)
        return False

    def grow(self, gang: int) -> None:
        """Place more pods of a gang that is in, as many as there is room for."""
        frame = self.frames[gang]
        if frame.rules.shared:
            return
        cells_of = self._demand.cells_of[gang]
        for member, cells in enumerate(cells_of):
            there = Counter(pod.kind for pod in frame.pods if pod.member == member)
            wanted = (
                WantedPods(member, cell.kind, 1)
                for cell in cells
                for _ in range(cell.pods - there[cell.kind])
            )
            for want in wanted:
                mark, saved = self._ledger.mark, frame.save()
                if not (self._place_pod(frame, want, strict=True) and self._hold()):
                    self._ledger.undo(mark)
                    frame.restore(saved)
                    break

    def _list_wanted(self, gang: int) -> list[WantedPods]:
        """List the pods that a gang needs: whom others are near to first, claims last.

        Of equal ones the largest.
        """
        members, part = self._demand.member_kinds, self._demand.gangs[gang]
        wanted = [
            WantedPods(member, cell.kind, cell.least)
            for member, cells in enumerate(self._demand.cells_of[gang])
            for cell in cells
            if cell.least
        ]
        wanted.sort(
            key=lambda want: (
                want.member in part.claim_members,
                bool(self._between.list_near(want.kind)),
                -members[want.kind].asked,
            )
        )
        return wanted

    def _hold(self) -> bool:
        return not self._demand.query.domains or self._between.hold(
            self._places.list_used()
        )

    # --- one choice after the other ------------------------------------------------

    def _place(
        self,
        frame: Frame,
        wanted: Sequence[WantedPods],
        choices: Sequence[Choice],
        *,
        strict: bool,
    ) -> bool:
        """Place pods, option by option of what there is to choose for them."""
        kinds = {want.kind for want in wanted}
        choice = next((choice for choice in choices if choice.kinds & kinds), None)
        if choice is None:
            return all(
                self._place_pod(frame, want, strict=strict)
                for want in wanted
                for _ in range(want.count)
            )
        inner = [want for want in wanted if want.kind in choice.kinds]
        outer = [want for want in wanted if want.kind not in choice.kinds]
        rest = [other for other in choices if other is not choice]
        within = [other for other in rest if other.kinds & choice.kinds]
        beyond = [other for other in rest if not other.kinds <= choice.kinds]
        pods = [(want.kind, want.count) for want in inner]
        self.steps -= len(self.views) // LOOKS
        for option in self._choices.list_options(choice, frame, pods):
            if self._tries <= 0 or self.steps <= 0 or self._dead_ends <= 0:
                return False
            self._tries -= 1
            mark, saved = self._ledger.mark, frame.save()
            self._choices.choose(choice, frame, option)
            if self._place(frame, inner, within, strict=strict):
                if self._place(frame, outer, beyond, strict=strict):
                    return True
                self._dead_ends -= 1
            self._ledger.undo(mark)
            frame.restore(saved)
        return False

    # --- one pod -------------------------------------------------------------------

    def _place_pod(self, frame: Frame, want: WantedPods, *, strict: bool) -> bool:
        kind = want.kind
        if kind in self._full:
            return False
        member = self._demand.member_kinds[kind]
        shared = next((s for s in frame.rules.shared if s.claim == kind), None)
        conditions = frame.list_conditions(kind)
        starts = tuple(condition.start for condition in conditions)
        is_free = shared is None and frame.is_free(kind)
        for node in self._list_nodes(frame, kind, shared):
            look = self._stock.look_of(node) if is_free else None
            if (kind, look, starts) in self._misfits:
                continue
            if self.steps <= 0:
                return False
            if not self._between.admits(kind, node, strict=strict):
                continue
            self.steps -= 1
            view = self.views[node]
            accept = partial(self._is_accepted, frame, kind, shared, node)
            way, takes = find_way(
                self._stock,
                self._ledger,
                (member, node, view),
                Wish(conditions, accept, self._style),
            )
            self.steps -= takes
            if way is None:
                if look is not None:
                    self._misfits.add((kind, look, starts))
                continue
            self._between.add(kind, node)
            self._stock.take_resources(node, kind)
            self._places.use(node)
            pod = FramePod(want.member, kind, node, way.uses, way.alternatives)
            frame.add(pod, view.shape, way)
            return True
        if (
            not frame.pods
            and frame.gang not in self._rules_of
            and not any(member.roles)
        ):
            self._full.add(kind)
        return False

    def _is_accepted(
        self,
        frame: Frame,
        kind: int,
        shared: ClaimShared | None,
        node: int,
        way: Way,
    ) -> bool:
        """True if the gang of a pod lets it have these devices."""
        is_there = shared is None or self._is_reached(frame, shared, node, way)
        return is_there and frame.accepts(kind, self.views[node].shape, way)

    def _list_nodes(
        self, frame: Frame, kind: int, shared: ClaimShared | None
    ) -> list[int]:
        """List the nodes that a pod may be on, the best first."""
        nodes: Iterable[int] = self._places.list_for(kind)
        if shared is not None:
            # The claim is where the first of its pods is.
            users = (pod for pod in frame.pods if pod.kind in shared.users)
            first = min(users, key=lambda pod: pod.member, default=None)
            nodes = [] if first is None else [first.node]
        listed = list(nodes)
        self.steps -= len(listed) // LOOKS
        found = [
            node
            for node in listed
            if self._stock.has_resources(node, kind)
            and frame.admits(kind, node, self.views[node].shape)
        ]
        if self._style.best_fit:
            found.sort(
                key=lambda node: (
                    frame.count_cost(kind, self.views[node].shape),
                    self._stock.count_free(node),
                    node,
                )
            )
        else:
            found.sort(
                key=lambda node: (
                    frame.count_cost(kind, self.views[node].shape),
                    node,
                )
            )
        return found

    def _is_reached(
        self, frame: Frame, shared: ClaimShared, node: int, way: Way
    ) -> bool:
        """True if all pods that share a claim see each of its devices."""
        users = [pod.node for pod in frame.pods if pod.kind in shared.users]
        for _, number in way.uses:
            group = self.views[node].shape.groups[number]
            if not group.identity or group.is_pinning:
                if any(user != node for user in users):
                    return False
            elif any(
                group.identity
                not in {other.identity for other in self.views[user].shape.groups}
                for user in users
            ):
                return False
        return True
