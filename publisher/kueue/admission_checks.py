"""The controller of our AdmissionChecks: reads Workloads, writes states and Gangs.

Follows while the service runs, writes while it leads. A conflict is left to the watch:
what has changed is planned anew. [io]
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any

from contracts.errors import ContractsError
from contracts.gang import Gang
from contracts.messages import MAX_REASON
from publisher.gang_names import shorten_gang_name
from publisher.kube.changes import ChangePage
from publisher.kueue.gates import open_gate
from publisher.kueue.objects import (
    KueueAdmissionCheck,
    KueueFlavor,
    read_admission_check,
    read_flavor,
    read_kueue_workload,
)
from publisher.kueue.plan_checks import (
    RETRY_S,
    CheckPlan,
    plan_check,
    plan_refusal,
    to_gang_body,
)
from runtime.kube.api import KubernetesApi
from runtime.kube.errors import (
    AlreadyExistsError,
    ApiError,
    ConflictError,
    InvalidError,
    NotFoundError,
)
from runtime.kube.kinds import (
    ADMISSION_CHECK,
    GANG,
    KUEUE_KINDS,
    KUEUE_WORKLOAD,
    RESOURCE_FLAVOR,
    Kind,
)
from runtime.log import get_logger
from runtime.refusals import Refusals
from runtime.waits import first_of

_LOOK_S = 2.0
"""How often all Workloads are looked at; what changes is looked at at once."""
_IN_FLIGHT = 16
"""Workloads that are written at a time."""

Json = dict[str, Any]
log = get_logger(__name__)


class AdmissionChecks:
    """The Workloads that wait for a check of ours."""

    def __init__(
        self,
        api: KubernetesApi,
        find_gang: Callable[[str], tuple[Gang | None, Mapping[str, Any]]],
        *,
        patience_s: float,
        now: Callable[[], str],
        retry_s: float = RETRY_S,
    ) -> None:
        """`find_gang` gives the Gang object of a key, and its status as it is known.

        That may be newer than the one that is written. `look` is called when it is.
        """
        self._api = api
        self._find_gang = find_gang
        self._patience_s = patience_s
        self._retry_s = retry_s
        self._now = now
        self._workloads: dict[str, Json] = {}
        """Workloads for which something may come next."""
        self._others: dict[str, Json] = {}
        """Workloads that only others' checks were asked about."""
        self._checks: dict[str, Json] = {}
        """AdmissionChecks that are ours, by name."""
        self._multikueue: set[str] = set()
        """AdmissionChecks whose Workloads run in other clusters."""
        self._flavors: dict[str, KueueFlavor] = {}
        self._by_gang: dict[str, str] = {}
        """Workloads by the keys of their Gangs."""
        self._due: set[str] = set()
        """Workloads that have changed, or whose Gangs have."""
        self._changed = asyncio.Event()
        self._refusals = Refusals()

    @property
    def kinds(self) -> frozenset[str]:
        """Name the kinds whose pages are to be taken in."""
        return frozenset(kind.name for kind in (*KUEUE_KINDS, GANG))

    async def take(self, page: ChangePage) -> None:
        """Take in what has changed."""
        for change in page.changes:
            if change.kind == ADMISSION_CHECK.name:
                self._take_check(change.key, change.object)
            elif change.kind == RESOURCE_FLAVOR.name:
                self._take_flavor(change.key, change.object)
            elif change.kind == GANG.name:
                self.look((change.key,))
            else:
                self._take_workload(change.key, change.object)
        if self._due:
            self._changed.set()

    def look(self, gangs: Iterable[str]) -> None:
        """Look at the Workloads of these Gangs soon: something is new of them."""
        due = {self._by_gang[key] for key in gangs if key in self._by_gang}
        if due:
            self._due |= due
            self._changed.set()

    def _take_workload(self, key: str, raw: Json | None) -> None:
        self._others.pop(key, None)
        if raw is None:
            self._workloads.pop(key, None)
            self._by_gang.pop(_gang_key(key), None)
            return
        self._workloads[key] = raw
        self._by_gang[_gang_key(key)] = key
        self._due.add(key)

    def _take_check(self, name: str, check: Json | None) -> None:
        read = None if check is None else _read_check(name, check)
        if read is not None and read.sends_away:
            self._multikueue.add(name)
        else:
            self._multikueue.discard(name)
        if check is None or read is None or not read.is_ours:
            self._checks.pop(name, None)
            return
        if name not in self._checks:
            # Workloads may have been looked at before we knew that we are asked.
            self._workloads = self._others | self._workloads
            self._others = {}
        self._checks[name] = check

    def _take_flavor(self, name: str, raw: Json | None) -> None:
        self._flavors.pop(name, None)
        if raw is None:
            return
        try:
            self._flavors[name] = read_flavor(raw, name)
        except ContractsError as error:
            _log_refused(RESOURCE_FLAVOR, name, error)

    async def write(self, lost: asyncio.Event) -> None:
        """Do what comes next for every Workload, until `lost` is set."""
        while not lost.is_set():
            for name in tuple(self._checks):
                await self._try_step(ADMISSION_CHECK, name, self._activate_check(name))
            self._due.clear()
            await self._advance_workloads(tuple(self._workloads), lost)
            await self._follow_changes(lost)

    async def _follow_changes(self, lost: asyncio.Event) -> None:
        """Look at what changes, until it is time to look at everything."""
        loop = asyncio.get_running_loop()
        end_s = loop.time() + _LOOK_S
        while not lost.is_set() and (left_s := end_s - loop.time()) > 0:
            await first_of(lost, self._changed, within_s=left_s)
            self._changed.clear()
            due, self._due = self._due, set()
            await self._advance_workloads(due, lost)

    async def _advance_workloads(
        self, keys: Iterable[str], lost: asyncio.Event
    ) -> None:
        remaining = iter(keys)

        async def work() -> None:
            for key in remaining:
                if lost.is_set():
                    return
                await self._try_step(KUEUE_WORKLOAD, key, self._advance_workload(key))

        async with asyncio.TaskGroup() as tasks:
            for _ in range(_IN_FLIGHT):
                tasks.create_task(work())

    async def _try_step(self, kind: Kind, key: str, step: Awaitable[None]) -> None:
        """Take a step for one object; a failure does not stop the others."""
        with self._refusals.guard(f"{kind.name}/{key}"):
            try:
                await step
            except ApiError as error:
                reason = str(error)[:MAX_REASON]
                log.warning("kueue.delayed", kind=kind.name, key=key, reason=reason)

    async def _activate_check(self, name: str) -> None:
        """Tell Kueue that somebody answers for a check."""
        check = self._checks.get(name)
        if check is None or read_admission_check(check, name).is_active:
            return
        conditions = (check.get("status") or {}).get("conditions") or []
        active = {
            "type": "Active",
            "status": "True",
            "reason": "Answered",
            "message": "Moorings decides devices",
            "lastTransitionTime": self._now(),
        }
        others = [c for c in conditions if c.get("type") != "Active"]
        body = {"status": {"conditions": [*others, active]}}
        answer = await self._api.patch(
            ADMISSION_CHECK, name, body, subresource="status"
        )
        if self._checks.get(name) is check:
            self._checks[name] = answer

    async def _advance_workload(self, key: str) -> None:
        """Do what comes next for a Workload as it is now.

        Pages are taken in during every await: what was answered replaces only what it
        was planned for.
        """
        raw = self._workloads.get(key)
        if raw is None:
            return
        try:
            workload = read_kueue_workload(raw)
            gang, status = self._find_gang(_gang_key(key))
            plan = plan_check(
                raw,
                gang,
                status,
                checks=self._checks,
                now=self._now(),
                patience_s=self._patience_s,
                flavors=self._flavors,
                multikueue=self._multikueue,
                retry_s=self._retry_s,
            )
        except ContractsError as error:
            _log_refused(KUEUE_WORKLOAD, key, error)
            self._workloads.pop(key, None)
            return
        if plan.is_nothing:
            self._workloads.pop(key, None)
            asked = workload.status.admission_checks
            if asked and not any(check.name in self._checks for check in asked):
                self._others[key] = raw
            return
        # The watch will say what is there instead.
        with suppress(AlreadyExistsError, ConflictError, NotFoundError):
            await self._carry_out(key, raw, plan, gang)

    async def _carry_out(
        self, key: str, raw: Json, plan: CheckPlan, gang: Gang | None
    ) -> None:
        if plan.delete and gang is not None:
            meta = gang.metadata
            name = f"{meta.namespace}/{meta.name}"
            await self._api.delete(GANG, name, uid=meta.uid)
            return
        if plan.open_gate:
            if not await open_gate(self._api, key, raw):
                self._workloads.pop(key, None)
            return
        try:
            if plan.create is not None:
                await self._api.create(GANG, to_gang_body(plan.create))
            await self._write_states(key, raw, plan)
        except InvalidError as error:
            # Admission names no field: quotas, policies and webhooks may change.
            refusal = plan_refusal(
                raw,
                checks=self._checks,
                message=str(error),
                is_final=bool(error.field),
                now=self._now(),
                retry_s=self._retry_s,
            )
            await self._write_states(key, raw, refusal)

    async def _write_states(self, key: str, raw: Json, plan: CheckPlan) -> None:
        """Write the states of a plan, where it has some."""
        if not plan.states:
            return
        answer = await self._api.patch(
            KUEUE_WORKLOAD,
            key,
            {"status": {"admissionChecks": list(plan.states)}},
            subresource="status",
            uid=raw["metadata"]["uid"],
            resource_version=raw["metadata"]["resourceVersion"],
        )
        if self._workloads.get(key) is raw:
            self._workloads[key] = answer
        log.info("kueue.told", workload=key, state=plan.states[0]["state"])


def _gang_key(key: str) -> str:
    """Return the key of the Gang that asks for a Workload's devices."""
    namespace, _, name = key.partition("/")
    return f"{namespace}/{shorten_gang_name(name)}"


def _read_check(name: str, check: Json) -> KueueAdmissionCheck | None:
    """Read a check; None: it cannot be read, so it is nobody's."""
    try:
        return read_admission_check(check, name)
    except ContractsError as error:
        _log_refused(ADMISSION_CHECK, name, error)
        return None


def _log_refused(kind: Kind, key: str, error: ContractsError) -> None:
    reason = str(error)[:MAX_REASON]
    log.error("object.refused", kind=kind.name, key=key, reason=reason)
