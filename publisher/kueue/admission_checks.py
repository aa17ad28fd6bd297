"""The controller of our AdmissionChecks: reads Workloads, writes states and Gangs.

Follows while the service runs, writes while it leads. A conflict is left to the watch:
what has changed is planned anew. [io]
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from contracts.errors import ContractsError
from contracts.gang import Gang
from contracts.messages import MAX_REASON
from publisher.errors import AlreadyExistsError, ApiError, ConflictError, NotFoundError
from publisher.kube.api import KubernetesApi
from publisher.kube.changes import ChangePage
from publisher.kube.kinds import ADMISSION_CHECK, GANG, KUEUE_WORKLOAD
from publisher.kueue.plan_checks import (
    CONTROLLER,
    CheckPlan,
    name_gang,
    plan_check,
    read_kueue_workload,
    to_gang_body,
)
from runtime.log import get_logger
from runtime.waits import first_of

_LOOK_S = 2.0
"""How often it is asked what became of the Gangs."""

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
    ) -> None:
        """`find_gang` gives the Gang object of a key, and its status."""
        self._api = api
        self._find_gang = find_gang
        self._patience_s = patience_s
        self._now = now
        self._workloads: dict[str, Json] = {}
        """Those for which something may come next."""
        self._others: dict[str, Json] = {}
        """Those that only checks of others were asked about."""
        self._checks: dict[str, Json] = {}
        """AdmissionChecks that are ours, by name."""

    @property
    def kinds(self) -> frozenset[str]:
        """Name the kinds whose pages are to be taken in."""
        return frozenset({KUEUE_WORKLOAD.name, ADMISSION_CHECK.name})

    async def take(self, page: ChangePage) -> None:
        """Take in what has changed."""
        for change in page.changes:
            if change.kind == ADMISSION_CHECK.name:
                self._take_check(change.key, change.object)
            elif change.object is None:
                self._workloads.pop(change.key, None)
                self._others.pop(change.key, None)
            else:
                self._others.pop(change.key, None)
                self._workloads[change.key] = change.object

    def _take_check(self, name: str, check: Json | None) -> None:
        if check is None or check["spec"].get("controllerName") != CONTROLLER:
            self._checks.pop(name, None)
            return
        if name not in self._checks:
            # Workloads may have been looked at before we knew that we are asked.
            self._workloads = self._others | self._workloads
            self._others = {}
        self._checks[name] = check

    async def write(self, lost: asyncio.Event) -> None:
        """Do what comes next for every Workload, until `lost` is set."""
        while not lost.is_set():
            try:
                for name, check in tuple(self._checks.items()):
                    await self._activate(name, check)
                for key, raw in tuple(self._workloads.items()):
                    await self._advance(key, raw)
            except ApiError as error:
                log.warning("kueue.delayed", reason=str(error)[:MAX_REASON])
            await first_of(lost, within_s=_LOOK_S)

    async def _activate(self, name: str, check: Json) -> None:
        """Tell Kueue that somebody answers for a check."""
        conditions = (check.get("status") or {}).get("conditions") or []
        if any(c["type"] == "Active" and c["status"] == "True" for c in conditions):
            return
        active = {
            "type": "Active",
            "status": "True",
            "reason": "Answered",
            "message": "Moorings decides devices",
            "lastTransitionTime": self._now(),
        }
        others = [c for c in conditions if c["type"] != "Active"]
        body = {"status": {"conditions": [*others, active]}}
        answer = await self._api.patch(
            ADMISSION_CHECK, name, body, subresource="status"
        )
        self._checks[name] = answer

    async def _advance(self, key: str, raw: Json) -> None:
        try:
            meta = read_kueue_workload(raw).metadata
            gang, status = self._find_gang(f"{meta.namespace}/{name_gang(meta)}")
            plan = plan_check(
                raw,
                gang,
                status,
                checks=self._checks,
                now=self._now(),
                patience_s=self._patience_s,
            )
        except ContractsError as error:
            reason = str(error)[:MAX_REASON]
            log.error("object.refused", kind="Workload", key=key, reason=reason)  # noqa: TRY400 # the reason is the whole story
            del self._workloads[key]
            return
        if plan.is_nothing:
            self._workloads.pop(key, None)
            asked = (raw.get("status") or {}).get("admissionChecks") or ()
            if asked and not any(check.get("name") in self._checks for check in asked):
                self._others[key] = raw
        # The watch will say what is there instead.
        with suppress(AlreadyExistsError, ConflictError, NotFoundError):
            await self._carry_out(key, raw, plan, gang)

    async def _carry_out(
        self, key: str, raw: Json, plan: CheckPlan, gang: Gang | None
    ) -> None:
        if plan.create is not None:
            await self._api.create(GANG, to_gang_body(plan.create))
        if plan.delete and gang is not None:
            meta = gang.metadata
            name = f"{meta.namespace}/{meta.name}"
            await self._api.delete(GANG, name, uid=meta.uid)
        if plan.states:
            self._workloads[key] = await self._api.patch(
                KUEUE_WORKLOAD,
                key,
                {"status": {"admissionChecks": list(plan.states)}},
                subresource="status",
                uid=raw["metadata"]["uid"],
                resource_version=raw["metadata"]["resourceVersion"],
            )
            log.info("kueue.told", workload=key, state=plan.states[0]["state"])
