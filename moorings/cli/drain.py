"""`moorings agent drain`: waits until no devices of a node are held."""

from __future__ import annotations

import asyncio
import difflib
import os
import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated

import typer
from msgspec import Struct

from contracts.counts import counted
from moorings.cli.exit_codes import ExitCode
from moorings.cli.options import Context, Kubeconfig, Output, find_kubeconfig
from moorings.cli.output import Format, notify, say, show, show_progress
from moorings.draining import (
    DrainedClaim,
    DrainMark,
    choose_marks,
    find_marks,
    list_device_names,
    list_holders,
    make_rule,
    read_marks,
)
from moorings.errors import BadInputError, UnknownNameError, UsageError
from moorings.local.cluster import list_all, open_api, read_access
from runtime.kube.errors import AlreadyExistsError, NotFoundError
from runtime.kube.kinds import NODE, Kind, ServedKinds

if TYPE_CHECKING:  # the client comes with an extra
    from runtime.kube.api import KubernetesApi

COLUMNS = ("claim", "users", "devices")
_MANAGER = "moorings-drain"
_LOOK_S = 1.0
_SETTLE_S = 5.0
"""Decisions from before the devices were marked are in their claims by then."""


class Drain(Struct, frozen=True, kw_only=True):
    """The devices to drain, and their cluster."""

    api: KubernetesApi
    served: ServedKinds
    rules: Kind
    node: str
    device: str


def drain(
    node: Annotated[
        str,
        typer.Option(
            "--node", "-N", help="Node whose devices to drain.", show_default=False
        ),
    ],
    device: Annotated[
        str,
        typer.Option(
            help="Only this device: NAME, POOL/NAME or DRIVER/POOL/NAME.",
            show_default=False,
        ),
    ] = "",
    timeout: Annotated[
        float,
        typer.Option(metavar="SEC", help="How long to wait; 0: forever.", min=0),
    ] = 0.0,
    undo: Annotated[
        bool, typer.Option("--undo", help="Allow new claims on the devices again.")
    ] = False,
    kubeconfig: Kubeconfig = None,
    context: Context = "",
    output: Output = Format.TABLE,
) -> None:
    """Keep new claims off a node's devices, and wait until none is held.

    Ends no pod: delete or drain the pods first (kubectl drain), or let them finish, and
    keep the driver running until then. The devices stay marked until --undo. Exit 0:
    all are free; 1: some are still held after --timeout.
    """
    if not node:
        raise UsageError("drain: --node is empty")
    access = read_access(find_kubeconfig(kubeconfig, os.environ), context)

    async def run() -> int:
        async with open_api(access, _MANAGER) as api:
            served = await api.fetch_served_kinds()
            rules = served.device_taint_rule
            if rules is None:
                reason = "serves no DeviceTaintRules; use kubectl cordon NODE instead"
                raise BadInputError(access.server, reason)
            what = Drain(api=api, served=served, rules=rules, node=node, device=device)
            if undo:
                return await _remove_marks(what, output)
            return await _drain_node(what, timeout, output)

    raise typer.Exit(asyncio.run(run()))


async def _drain_node(what: Drain, timeout_s: float, output: Format) -> int:
    began_s = time.monotonic()
    marks = await _mark_devices(what)
    notify(
        f"marked {', '.join(map(str, sorted(marks))) or 'nothing: no devices'}; "
        f"to undo: moorings agent drain --node {what.node} --undo"
    )
    holders: list[DrainedClaim] = []
    is_free = False
    try:
        async with asyncio.timeout(timeout_s or None):
            with show_progress("waiting for claims to be freed"):
                await _wait_until_free(what, marks, holders)
        is_free = True
    except TimeoutError:
        pass
    waited_s = round(time.monotonic() - began_s, 1)
    value = {
        "node": what.node,
        "device": what.device,
        "drained": is_free,
        "waitedSeconds": waited_s,
        "marks": [str(mark) for mark in sorted(marks)],
        "holders": holders,
    }
    if output is not Format.TABLE or holders:
        rows = (
            (h.claim, ",".join(h.users) or "<none>", ",".join(h.devices))
            for h in holders
        )
        show(value, output, COLUMNS, rows)
    if output is Format.TABLE:
        about = f"node {what.node}" + (f", device {what.device}" if what.device else "")
        verdict = "free" if is_free else f"not free after {waited_s:g} s"
        say(f"{about}: {verdict}")
    return ExitCode.YES if is_free else ExitCode.NO


async def _wait_until_free(
    what: Drain, marks: set[DrainMark], holders: list[DrainedClaim]
) -> None:
    """Wait until no marked device is held; `holders` are the claims that hold some.

    Claims are all listed only to begin with and to be sure in the end; in between each
    that holds something is read by its name.
    """
    settled_s = time.monotonic() + _SETTLE_S
    while True:
        claims = await list_all(what.api, what.served.resource_claim)
        _note_holders(holders, list_holders(claims, marks))
        while holders:
            await asyncio.sleep(_LOOK_S)
            _note_holders(holders, await _read_again(what, marks, holders))
        if time.monotonic() >= settled_s:
            return
        await asyncio.sleep(_LOOK_S)
        more = await _mark_devices(what) - marks
        if more:
            marks |= more
            settled_s = time.monotonic() + _SETTLE_S


async def _read_again(
    what: Drain, marks: set[DrainMark], holders: Iterable[DrainedClaim]
) -> list[DrainedClaim]:
    async def read(holder: DrainedClaim) -> list[DrainedClaim]:
        try:
            claim = await what.api.get(what.served.resource_claim, holder.claim)
        except NotFoundError:
            return []
        return list_holders([claim], marks)

    found = await asyncio.gather(*map(read, holders))
    return [holder for of_claim in found for holder in of_claim]


def _note_holders(holders: list[DrainedClaim], now: Sequence[DrainedClaim]) -> None:
    """Update the holders, and print them if they changed."""
    if list(now) != holders:
        names = ", ".join(map(str, now))
        are_held = counted(len(now), "claim is held", "claims are held")
        notify(f"{are_held}: {names}" if now else "no claim is held")
    holders[:] = now


async def _mark_devices(what: Drain) -> set[DrainMark]:
    """Mark what is not marked yet; returns all that is.

    Raises:
        UnknownNameError: there is no such node or device.
    """
    slices = await list_all(
        what.api,
        what.served.resource_slice,
        field_selector=f"spec.nodeName={what.node}",
    )
    marks = find_marks(slices, what.node, what.device)
    there = read_marks(await list_all(what.api, what.rules), what.node)
    kept = choose_marks(there, what.device).keys()
    if not marks and not kept:
        await _check_names(what, list_device_names(slices, what.node))
    for mark in sorted(marks - there.keys()):
        rule = make_rule(mark, what.node, what.rules.api_version)
        try:
            await what.api.create(what.rules, rule)
        except AlreadyExistsError:
            continue  # somebody else drains the node, too
    return marks | kept


async def _check_names(what: Drain, devices: Sequence[str]) -> None:
    """Find out which name is unknown where nothing could be marked."""
    if devices:
        near = difflib.get_close_matches(what.device, devices)
        place = f"device of node {what.node}"
        raise UnknownNameError(place, what.device, near)
    nodes = [str(n["metadata"]["name"]) for n in await list_all(what.api, NODE)]
    if what.node not in nodes:
        near = difflib.get_close_matches(what.node, nodes)
        raise UnknownNameError("node", what.node, near)
    if what.device:
        raise UnknownNameError(f"device of node {what.node}", what.device)


async def _remove_marks(what: Drain, output: Format) -> int:
    """Remove the marks of the node, or of one of its devices."""
    there = read_marks(await list_all(what.api, what.rules), what.node)
    marks = choose_marks(there, what.device)
    for name in marks.values():
        try:
            await what.api.delete(what.rules, name)
        except NotFoundError:
            continue
    value = {"node": what.node, "device": what.device, "undone": list(map(str, marks))}
    rows = ([mark] for mark in sorted(marks))
    show(value, output, ("no longer marked",), rows, "nothing was marked")
    return ExitCode.YES
