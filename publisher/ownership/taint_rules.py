"""Our DeviceTaintRules on the API server: made, repaired, removed.

They keep kube-scheduler from owned devices of other drivers, and from devices of other
drivers that node agents judge. Carries out the plans whenever rules, nodes, health or
the drivers that have slices change. Where
the kind is not served it says once what is left to keep kube-scheduler away. Decides
nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from time import monotonic

from contracts.device import DeviceTaintRule
from contracts.ids import DriverName
from publisher.kube.carry_out import carry_out
from publisher.kube.object_cache import ObjectCache
from publisher.ownership.ownership import Ownership
from publisher.ownership.plan_taint_rules import plan_health_rules, plan_taint_rules
from publisher.pauses import UNDONE, Pauses
from publisher.slices.announced_pools import AnnouncedPools
from publisher.slices.known_slices import KnownSlices
from publisher.steps import Delete, Step
from runtime.kube.api import KubernetesApi
from runtime.kube.errors import ApiError, InvalidError
from runtime.kube.kinds import Kind
from runtime.log import get_logger
from runtime.refusals import Refusals
from runtime.retry import Outage
from runtime.waits import first_of

_IDLE_S = 1.0

log = get_logger(__name__)


class TaintRuleWriter:
    """The rules that are there, and the way to change them."""

    def __init__(
        self,
        api: KubernetesApi,
        kind: Kind | None,
        ownership: Ownership,
        slices: KnownSlices,
        announced: AnnouncedPools,
    ) -> None:
        self._api = api
        self._kind = kind
        self._ownership = ownership
        self._slices = slices
        self._announced = announced
        self._rules: ObjectCache[DeviceTaintRule] = ObjectCache()
        self._undone: Pauses[str] = Pauses(UNDONE)
        self._rests_s: dict[str, float] = {}
        """Until when rules that others change are left alone."""
        self._outage = Outage("write DeviceTaintRules")
        self._wake = asyncio.Event()
        self._logged_unserved = False
        self._refusals = Refusals()

    def apply_rule(self, name: str, rule: DeviceTaintRule | None) -> None:
        """Note a rule (None: it is gone)."""
        news = self._rules.remove(name) if rule is None else self._rules.put(rule)
        if news:
            self._wake.set()

    def look_again(self) -> None:
        """Look again after what is known of drivers, pools or nodes changed."""
        self._wake.set()

    async def write(self, stop: asyncio.Event) -> None:
        """Keep the rules as ownership asks for; begin when all is known."""
        while not stop.is_set():
            self._wake.clear()
            error = None
            with self._refusals.guard("DeviceTaintRule"):
                error = await self._reconcile_rules()
            if error is not None:
                self._wake.set()
                await self._outage.wait(error, stop)
            else:
                self._outage.note_success()
                await first_of(stop, self._wake, within_s=_IDLE_S)

    async def _reconcile_rules(self) -> ApiError | None:
        """Carry out the plan; returns why part of it failed.

        A rule that the API server refuses does not stop the others.
        """
        foreign = self._slices.foreign()
        if self._kind is None:
            self._log_unserved({other.pool.driver for other in foreign})
            return None
        announced, nodes = self._announced.pools(), self._slices.nodes
        steps = (
            *plan_taint_rules(self._ownership, foreign, announced, nodes, self._rules),
            *plan_health_rules(
                self._announced.judged(), foreign, announced, nodes, self._rules
            ),
        )
        now_s, refused = monotonic(), None
        for step in steps:
            name = step.object.metadata.name
            if self._rests_s.get(name, 0.0) > now_s:
                continue
            try:
                await self._write_rule(self._kind, step)
            except InvalidError as error:
                refused = refused or error
            except ApiError as error:
                return error
            self._rests_s[name] = now_s + self._undone.next_s(name, now_s)
        return refused

    async def _write_rule(self, kind: Kind, step: Step[DeviceTaintRule]) -> None:
        rule = await carry_out(self._api, kind, step)
        if rule is None:
            self._rules.note_deleted(step.object)
        else:
            self._rules.put(rule)
        event = "rule.removed" if isinstance(step, Delete) else "rule.written"
        log.info(event, rule=step.object.metadata.name)

    def _log_unserved(self, drivers: Iterable[DriverName]) -> None:
        tainted = sorted(filter(self._ownership.taints_driver, drivers))
        if not tainted or self._logged_unserved:
            return
        self._logged_unserved = True
        log.warning(
            "rules.unserved",
            drivers=tainted,
            reason="the cluster serves no DeviceTaintRule: gate and admission policy "
            "alone keep kube-scheduler away from devices of these drivers",
        )
