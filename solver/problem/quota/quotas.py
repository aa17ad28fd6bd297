"""Which gangs of a batch are tried, by what is left of their queues' quotas.

In the order of the batch gangs take what is left; who asks for more waits, and whoever
asks for less after it may still be tried. All gangs come before the pods that a gang
could do without. Pure.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable

from msgspec import Struct, structs

from contracts.allocation import Reason, Rule
from contracts.pods.node_resources import CPU
from solver.problem.gangs import GangPart
from solver.problem.problem import QuotaPart
from solver.problem.quota.asked import Asked, count_asked
from solver.problem.quota.flavors import (
    Flavors,
    Shortage,
    choose_flavors,
    list_suiting,
    with_flavors,
)
from solver.problem.quota.tree import QuotaLedger, QuotaNode
from solver.snapshot.snapshot import Snapshot


class Within(Struct, frozen=True, kw_only=True):
    """The gangs of a batch as their quotas let them be tried, and those quotas."""

    gangs: tuple[GangPart, ...]
    quotas: tuple[QuotaPart, ...]
    """As they were before the batch."""


def keep_quotas(snapshot: Snapshot, gangs: Iterable[GangPart]) -> Within:
    """Refuse, for now, the gangs that ask for more than is left; in their order.

    Who is refused for another reason asks for nothing.
    """
    asked = tuple(gangs)
    names = {gang.queue.name for gang in asked if gang.queue is not None}
    if not names:
        return Within(gangs=asked, quotas=())
    keeper = _Keeper(snapshot)
    recorded = keeper.ledger.record(sorted(names))
    cores = [keeper.take(gang) for gang in asked]
    grown = tuple(
        core if core.refused else keeper.grow(gang, core)
        for gang, core in zip(asked, cores, strict=True)
    )
    return Within(gangs=grown, quotas=recorded)


class _Keeper:
    """Takes of quotas what one gang after the other asks for."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self.ledger = QuotaLedger(snapshot)
        self._before = QuotaLedger(snapshot)
        """As the batch found it, to tell others' holdings from others' wishes."""

    def take(self, gang: GangPart) -> GangPart:
        """Return the gang with only the pods that it needs, or refused."""
        if gang.refused or gang.queue is None:
            return gang
        found = self._choose(gang.core)
        if isinstance(found, Shortage):
            reason = self._make_reason(gang.core, found)
            return structs.replace(gang.core, refused=(reason,), rejected=False)
        return self._with_taken(gang.core, found)

    def grow(self, gang: GangPart, core: GangPart) -> GangPart:
        """Return a gang with as many of its extra pods as there is quota for.

        One that is in already, and may have none, is refused for now.
        """
        queue = core.queue
        if core is gang or queue is None:
            return core
        whole, needed = structs.replace(gang, queue=queue), count_asked(core, queue)

        def ask_for(extra: int) -> Flavors | Shortage:
            wanted = count_asked(whole.with_extra(extra), queue)
            more = {r: a - needed.get(r, 0) for r, a in wanted.items()}
            return self._choose(whole, more)

        def is_too_many(extra: int) -> bool:
            return isinstance(ask_for(extra), Shortage)

        every = range(gang.pods - core.pods + 1)
        fits = bisect_left(every, True, key=is_too_many) - 1
        taken = ask_for(fits if fits or not gang.is_in else min(1, every[-1]))
        if isinstance(taken, Shortage):
            reason = self._make_reason(whole, taken)
            return structs.replace(whole, refused=(reason,))
        grown = whole.with_extra(fits) if fits < every[-1] else whole
        return self._with_taken(grown, taken)

    def _choose(self, gang: GangPart, asked: Asked | None = None) -> Flavors | Shortage:
        objects, part = self._snapshot.queues, gang.queue
        queue = None if part is None else objects.cluster_queues.get(part.name)
        if part is None or queue is None:
            return Flavors()
        if asked is None:
            asked = count_asked(gang, part)
        suiting = list_suiting(objects, queue, gang)
        return choose_flavors(self.ledger, queue, suiting, asked)

    def _with_taken(self, gang: GangPart, flavors: Flavors) -> GangPart:
        if gang.queue is not None and gang.queue.name in self.ledger.tree.queues:
            self.ledger.add(self.ledger.tree.queues[gang.queue.name], flavors.amounts)
        return with_flavors(gang, flavors, self._snapshot.queues)

    def _make_reason(self, gang: GangPart, short: Shortage) -> Reason:
        name = "" if gang.queue is None else gang.queue.name
        node = self.ledger.tree.queues[name]
        return make_reason(node, short, self.ledger, self._before)


def make_reason(
    node: QuotaNode, short: Shortage, ledger: QuotaLedger, before: QuotaLedger
) -> Reason:
    """Say which quota is too small for a gang, who has it, and why none is borrowed."""
    name, resource = node.key[1], short.resource
    asked = write_amount(resource, short.asked)
    quota = (short.flavor, resource)
    nominal, used = node.subtree.get(quota, 0), before.used(node, quota)
    left = max(before.available(node, quota), 0)
    ahead = max(left - max(ledger.available(node, quota), 0), 0)
    if not short.flavor:
        message = f"it may get {asked} {resource}; no flavor of {name} suits its pods"
    else:
        message = (
            f"it may get {asked} {resource}; {name} holds "
            f"{write_amount(resource, used)} of its {write_amount(resource, nominal)} "
            f"of flavor {short.flavor}; "
            f"{_explain_borrowing(node, quota, before)}"
        )
    if ahead:
        message += f"; gangs before it ask for {write_amount(resource, ahead)}"
    return Reason(
        rule=Rule.QUOTA,
        subject=f"ClusterQueue {name}",
        message=message,
        facts={
            "asked": short.asked,
            "used": used,
            "nominal": nominal,
            "left": left,
            "ahead": ahead,
        },
    )


def _explain_borrowing(
    node: QuotaNode, quota: tuple[str, str], ledger: QuotaLedger
) -> str:
    """Say how much may be borrowed, and what limits that."""
    resource = quota[1]
    if node.parent is None:
        return "it borrows nothing: it is in no cohort"
    own = max(node.subtree.get(quota, 0) - ledger.used(node, quota), 0)
    left = write_amount(resource, max(ledger.available(node, quota) - own, 0))
    limit, cohort = node.borrowing.get(quota), node.parent.key[1]
    above = ledger.available(node.parent, quota)
    borrowed = max(ledger.used(node, quota) - node.subtree.get(quota, 0), 0)
    if limit is not None and limit - borrowed < above:
        most = write_amount(resource, limit)
        return f"borrowing is {left} because its limit is {most}"
    if left == "0":
        return f"borrowing is 0 because cohort {cohort} has none left"
    return f"borrowing is {left} because cohort {cohort} has no more left"


def write_amount(resource: str, amount: int) -> str:
    """Write an amount of a quota; cpu is counted in thousandths."""
    if resource == CPU:
        return str(amount // 1000) if amount % 1000 == 0 else f"{amount}m"
    return str(amount)


def is_held_up_by_others(reasons: Iterable[Reason]) -> bool:
    """True if a gang was refused for what others of its batch ask for, not hold."""
    return any(
        reason.rule is Rule.QUOTA and reason.facts["asked"] <= reason.facts["left"]
        for reason in reasons
    )
