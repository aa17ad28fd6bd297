"""Which gangs are tried, by what is left of their namespaces' quotas of devices.

A gang asks for as many devices as it might get, counted as Kubernetes' ResourceQuota
does: of alternatives the most, of all devices as many as a claim can hold. In the order
of their urgency the gangs of a namespace take what is left; who asks for more waits,
and whoever asks for less after it may still be tried. Pure.

Source: KEP-4381 (resource quotas), pkg/quota/v1/evaluator/core/resource_claims.go.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping

from msgspec import structs

from contracts.allocation import MAX_DEVICES, Reason, Rule
from contracts.features import Features
from contracts.ids import DriverName, Namespace
from contracts.lifecycle import GangRecord
from solver.problem.assemble import resolve_gangs
from solver.problem.gangs import ClaimPart, GangPart, SubrequestPart
from solver.problem.problem import QuotaPart
from solver.problem.sharing import count_claims
from solver.quotas import ALL_DRIVERS, Quotas
from solver.selectors.drivers import driver_of
from solver.snapshot.snapshot import Snapshot

Reserved = Counter[tuple[Namespace, DriverName]]
"""What the gangs before one ask for, by namespace and driver."""


def find_quotas(
    snapshot: Snapshot, quotas: Quotas, namespaces: Iterable[Namespace]
) -> tuple[QuotaPart, ...]:
    """Find the quotas of these namespaces, with what is held of each."""
    parts = []
    for namespace in sorted(set(namespaces)):
        limits = quotas.of(namespace)
        held = (snapshot.inventory.held.get(namespace) or {}) if limits else {}
        for driver in sorted(limits):
            used = sum(held.values()) if not driver else held.get(driver, 0)
            parts.append(
                QuotaPart(
                    namespace=namespace, driver=driver, limit=limits[driver], used=used
                )
            )
    return tuple(parts)


def refuse_over_quota(
    gangs: Iterable[GangPart], quotas: tuple[QuotaPart, ...]
) -> tuple[GangPart, ...]:
    """Refuse, for now, the gangs that would hold more than is left; most urgent first.

    All gangs come before the pods that a gang could do without: those have, in the same
    order, what is left then. Who is refused for another reason asks for nothing.
    """
    reserved: Reserved = Counter()
    asked = tuple(gangs)
    cores = [_take_or_refuse(gang, quotas, reserved) for gang in asked]
    return tuple(
        core if core.refused else _grow_gang(gang, core, quotas, reserved)
        for gang, core in zip(asked, cores, strict=True)
    )


def _take_or_refuse(
    gang: GangPart, quotas: tuple[QuotaPart, ...], reserved: Reserved
) -> GangPart:
    """Return the gang with only the pods that it needs, or refused."""
    mine = _list_own(gang, quotas)
    if gang.refused or not mine:
        return gang
    asked = _count_all_asked(gang.core, mine)
    reason = _find_reason(mine, asked, reserved)
    if reason is not None:
        return structs.replace(gang.core, refused=(reason,), rejected=False)
    _reserve_devices(reserved, gang.namespace, asked)
    return gang.core


def _grow_gang(
    gang: GangPart,
    core: GangPart,
    quotas: tuple[QuotaPart, ...],
    reserved: Reserved,
) -> GangPart:
    """Return a gang with as many of its extra pods as there is quota for.

    One that is in already, and may have none, is refused for now.
    """
    if core is gang:
        return gang
    mine = _list_own(gang, quotas)
    needed = _count_all_asked(core, mine)

    def count_extra(asked: GangPart) -> dict[DriverName, int]:
        return {
            driver: count - needed[driver]
            for driver, count in _count_all_asked(asked, mine).items()
        }

    def is_too_many(extra: int) -> bool:
        asked = count_extra(gang.with_extra(extra))
        return _find_reason(mine, asked, reserved) is not None

    every = range(gang.pods - core.pods + 1)
    fits = bisect_left(every, True, key=is_too_many) - 1
    if not fits and gang.is_in:
        reason = _find_reason(mine, count_extra(gang), reserved)
        return structs.replace(gang, refused=(reason,) if reason else ())
    grown = gang.with_extra(fits) if fits < every[-1] else gang
    _reserve_devices(reserved, gang.namespace, count_extra(grown))
    return grown


def _list_own(gang: GangPart, quotas: Iterable[QuotaPart]) -> list[QuotaPart]:
    return [quota for quota in quotas if quota.namespace == gang.namespace]


def _count_all_asked(
    gang: GangPart, quotas: Iterable[QuotaPart]
) -> dict[DriverName, int]:
    return {quota.driver: count_asked(gang, quota.driver) for quota in quotas}


class QuotaAdmission:
    """Lets gangs into one batch: no more than the quotas have left for all of them.

    So nobody is refused for what others only ask for. Who asks for more than is left by
    what is held comes in all the same, to be told. One that is in already, and may have
    a part of what it asks for, comes as the only one that asks for that.
    """

    def __init__(self, snapshot: Snapshot, quotas: Quotas, features: Features) -> None:
        self._snapshot = snapshot
        self._quotas = quotas
        self._features = features
        self._reserved: Reserved = Counter()

    def takes(self, record: GangRecord) -> bool:
        """Take a gang into the batch; False: it is for a later one."""
        mine = find_quotas(self._snapshot, self._quotas, [record.namespace])
        if not mine:
            return True
        try:
            (gang,) = resolve_gangs(self._snapshot, [record], self._features)
        except Exception:  # noqa: BLE001 # who cannot be read fails alone, in its solve
            return True
        if gang.refused:
            return True
        asked = _count_all_asked(gang if gang.is_in else gang.core, mine)
        if _find_reason(mine, asked, Counter()) is not None:
            one = _count_all_asked(gang.with_extra(1), mine)
            if not gang.is_in or _find_reason(mine, one, Counter()) is not None:
                return True
            if any(self._reserved[record.namespace, d] for d in asked if asked[d]):
                return False
        elif _find_reason(mine, asked, self._reserved) is not None:
            return False
        _reserve_devices(self._reserved, record.namespace, asked)
        return True


def _reserve_devices(
    reserved: Reserved, namespace: Namespace, asked: Mapping[DriverName, int]
) -> None:
    for driver, count in asked.items():
        reserved[namespace, driver] += count


def _find_reason(
    quotas: Iterable[QuotaPart], asked: Mapping[DriverName, int], reserved: Reserved
) -> Reason | None:
    """Return the reason of the first quota with too little left; None: all suffice."""
    for quota in quotas:
        ahead, count = reserved[quota.namespace, quota.driver], asked[quota.driver]
        if count and quota.used + ahead + count > quota.limit:
            return _make_reason(quota, count, ahead)
    return None


def _make_reason(quota: QuotaPart, asked: int, ahead: int) -> Reason:
    devices = f"devices of {quota.driver}" if quota.driver else "devices"
    others = f", and gangs before it ask for {ahead}" if ahead else ""
    return Reason(
        rule=Rule.DEVICE_QUOTA,
        subject=f"namespace {quota.namespace}",
        message=(
            f"it may get {asked} {devices}; its namespace holds {quota.used} of "
            f"{quota.limit}{others}"
        ),
        facts={
            "asked": asked,
            "used": quota.used,
            "ahead": ahead,
            "limit": quota.limit,
        },
    )


def is_held_up_by_others(reasons: Iterable[Reason]) -> bool:
    """True if a gang was refused for what others of its batch ask for, not hold."""
    for reason in reasons:
        if reason.rule is Rule.DEVICE_QUOTA:
            facts = reason.facts
            return facts["used"] + facts["asked"] <= facts["limit"]
    return False


def count_asked(gang: GangPart, driver: DriverName) -> int:
    """Count the devices that a gang may get of a driver, at most."""
    return sum(
        pods * _count_of_claim(claim, driver)
        for pods, claim in count_claims(gang.members)
    )


def _count_of_claim(claim: ClaimPart, driver: DriverName) -> int:
    most = sum(
        max(_count_of_request(asked, driver) for asked in request.alternatives)
        for request in claim.requests
    )
    return min(most, MAX_DEVICES)


def _count_of_request(asked: SubrequestPart, driver: DriverName) -> int:
    if asked.admin_access:
        return 0
    insisted = {driver_of(expression) for expression in asked.selectors} - {None}
    if driver != ALL_DRIVERS and insisted - {driver}:
        return 0
    return MAX_DEVICES if asked.all_devices else asked.count
