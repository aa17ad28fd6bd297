"""`moorings plan`: Kubernetes objects in, allocations out; no server needed."""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from enum import StrEnum
from functools import partial
from typing import Annotated, Any

import typer
from msgspec import structs

from contracts.codec import to_builtins
from contracts.counts import counted
from contracts.features import DEFAULT_VERSION
from contracts.gang import Gang
from contracts.ids import ClusterName, GangUID
from contracts.kubernetes.defaults import default_gang
from contracts.messages import SubmitGang
from contracts.validate import validate
from moorings.cli.documents import NOTHING, open_input, read_objects
from moorings.cli.exit_codes import ExitCode
from moorings.cli.options import Output, Progress
from moorings.cli.output import Format, notify, say, show, show_progress, show_table
from moorings.cli.search_limit import SearchLimit
from moorings.errors import BadInputError, UsageError
from moorings.plan.limits import parse_gates, read_features
from moorings.plan.objects import PlanObject
from moorings.plan.plan import NOTHING_UNDERSTOOD, Plan
from moorings.plan.summary import (
    MOST_CLAIMS,
    SUMMARY_COLUMNS,
    group_reasons,
    is_large,
    summarize,
)
from solver.cel.evaluator import SelectorEvaluator
from solver.service.garbage import after_batch, collecting_between_batches

_KEPT: list[object] = []
"""Input of the last plan, kept so that it is freed with the process, all at once."""
COLUMNS = ("gang", "pod", "claim", "verdict", "node", "devices")


class Order(StrEnum):
    """In which order to decide."""

    OPTIMAL = "optimal"
    UPSTREAM = "upstream"


def register(app: typer.Typer) -> None:
    """Add this command to the app."""
    app.command()(plan)


def plan(
    filename: Annotated[
        list[str] | None,
        typer.Option(
            "--filename",
            "-f",
            metavar="FILE",
            help="File, folder or - (standard input); may be repeated.",
            show_default=False,
        ),
    ] = None,
    node: Annotated[
        str | None,
        typer.Option(
            help="Allocate all claims that no pod uses together on this node."
        ),
    ] = None,
    order: Annotated[
        Order,
        typer.Option(
            metavar="ORDER",
            help="optimal: best for all together; upstream: as kube-scheduler would.",
        ),
    ] = Order.OPTIMAL,
    feature_gates: Annotated[
        str, typer.Option(help="Feature gates of the cluster: Name=true,...")
    ] = "",
    kubernetes_version: Annotated[
        str, typer.Option(help="Kubernetes release, for the defaults of feature gates.")
    ] = DEFAULT_VERSION,
    time_limit: Annotated[
        float | None,
        typer.Option(
            metavar="SEC",
            help="Stop searching after this long, like Ctrl-C; the best answer by "
            "then counts.",
            show_default=False,
        ),
    ] = None,
    jsonl: Annotated[
        bool,
        typer.Option("--jsonl", help="Read a case per line, write a Plan per line."),
    ] = False,
    every: Annotated[
        bool,
        typer.Option(
            "--all", "-a", help=f"List every claim, even more than {MOST_CLAIMS}."
        ),
    ] = False,
    progress: Progress = False,
    output: Output = Format.TABLE,
) -> None:
    """Decide offline which devices pods, claims and gangs would get.

    Reads ResourceSlices, DeviceClasses, claims, templates, taint rules, Nodes, Pods,
    Gangs and workloads with pod templates. Exit 0 only when everything is allocated.

    moorings plan -f cluster/ -f job.yaml

    kubectl get resourceslices,deviceclasses -o yaml | moorings plan -f - -f gang.yaml
    """
    features = read_features(kubernetes_version, parse_gates(feature_gates))
    _check_time_limit(time_limit, order)
    if jsonl and filename:
        raise UsageError("plan takes -f FILE or --jsonl, not both")
    if not jsonl and not filename:
        raise UsageError("plan needs either -f FILE or --jsonl")
    with SelectorEvaluator() as evaluator, collecting_between_batches():
        # OR-Tools is slow to import: meanwhile the sandbox starts, and no garbage is
        # looked for.
        from moorings.plan.decide import Planner, PlanOptions  # noqa: PLC0415
        from moorings.plan.lines import plan_lines  # noqa: PLC0415

        if jsonl:
            codes: list[int] = []
            # Ctrl-C ends it at a line, as there may be many more.
            lines_planner = Planner(
                evaluator, limit=partial(SearchLimit, time_limit, interrupts=False)
            )

            def keep(answer: Plan) -> None:
                codes.append(_choose_exit_code(answer, failed=False))

            for line in plan_lines(open_input(), lines_planner, keep):
                sys.stdout.buffer.write(line)
                sys.stdout.buffer.flush()
                after_batch()
            if not codes:
                raise BadInputError("standard input", NOTHING)
            raise typer.Exit(max(codes))
        found = read_objects(filename or [])
        usable = _drop_faulty_gangs(found.objects)
        failed = found.failed or len(usable) < len(found.objects)
        if failed and not usable:
            raise typer.Exit(ExitCode.ERROR)
        with show_progress("planning", asked=progress) as tell:
            options = PlanOptions(node=node, order=str(order), features=features)
            limit = partial(SearchLimit, time_limit, interrupts=order is Order.OPTIMAL)
            planner = Planner(evaluator, tell, limit)
            _KEPT[:] = (found, usable, planner)
            result = planner.plan(usable, options)
    if output is Format.TABLE:
        _print_plan(result, every=every)
    else:
        show(result, output, (), ())
    if found.skipped and not result.gangs:
        notify(NOTHING_UNDERSTOOD)
        failed = True
    raise typer.Exit(_choose_exit_code(result, failed=failed))


def _check_time_limit(seconds: float | None, order: Order) -> None:
    """See that a search can end after so long.

    Raises:
        UsageError: it cannot.
    """
    if seconds is None:
        return
    if not (math.isfinite(seconds) and seconds > 0):
        raise UsageError(f"--time-limit must be more than 0 seconds: {seconds:g}")
    if order is Order.UPSTREAM:
        raise UsageError("--time-limit works only with --order optimal")


def _drop_faulty_gangs(objects: list[PlanObject]) -> list[PlanObject]:
    """Leave out Gangs that cannot be submitted, and say why: the others go on."""
    usable = []
    for entry in objects:
        gang = entry.decoded.value
        if isinstance(gang, Gang):
            name = gang.metadata.name or gang.metadata.generate_name
            metadata = structs.replace(gang.metadata, name=name)
            gang = structs.replace(gang, metadata=metadata)
            try:
                SubmitGang(cluster=ClusterName("plan"), uid=GangUID("plan"), gang=gang)
            except ValueError as error:
                subject = f"Gang {name}".rstrip()
                # In the words of lint and submit, where they say anything of it.
                found = map(str, validate(default_gang(gang)))
                reason = "; ".join(t for t in found if t.startswith("spec")) or error
                notify(f"error: {entry.source}: {subject}: {reason}")
                continue
        usable.append(entry)
    return usable


def _choose_exit_code(result: Plan, *, failed: bool) -> int:
    if failed or result.has_errors:
        return ExitCode.ERROR
    return ExitCode.YES if result.is_yes else ExitCode.NO


def _print_plan(result: Plan, *, every: bool) -> None:
    if result.error is not None:
        notify(f"error: {result.error}")
        return
    # First what each claim gets, then each reason once, then all of it in one line.
    for note in result.notes:
        notify(f"note: {note}")
    if is_large(result) and not every:
        show_table(SUMMARY_COLUMNS, summarize(result))
        are = counted(len(result.claims), "claim is", "claims are")
        notify(f"{are} not listed; use --all")
    else:
        rows: Iterable[tuple[str, ...]] = [
            *(
                (claim.namespace, *_to_row(to_builtins(claim)))
                for claim in result.claims
            ),
            *_list_without_claims(result),
        ]
        columns: tuple[str, ...] = ("namespace", *COLUMNS)
        if len({gang.namespace for gang in result.gangs}) <= 1:
            columns, rows = COLUMNS, (row[1:] for row in rows)
        show_table(columns, rows, "no claims to allocate")
    for line in group_reasons(result.gangs):
        say(line)
    verdicts = Counter(gang.verdict for gang in result.gangs)
    counts = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.items())
    stats = result.stats
    if stats.settled_pods:
        bound = counted(stats.settled_pods, "pod")
        counts = f"{counts or 'nothing to decide'}, {bound} bound or finished before"
    say(
        f"{result.status}: {counts or 'nothing to decide'}; "
        f"{counted(stats.devices, 'device')} on {counted(stats.nodes, 'node')}, "
        f"{stats.total_seconds:.3f} s",
    )


def _list_without_claims(result: Plan) -> Iterator[tuple[str, ...]]:
    """Go through the pods that have a place and no claim of their own in the table.

    They share one that stands there for another pod, or ask for none.
    """
    listed = {(c.namespace, c.gang, c.member, c.index) for c in result.claims}
    for gang in result.gangs:
        for member in gang.members:
            place = (gang.namespace, gang.name, member.name, member.index)
            if place not in listed and member.node:
                names = ", ".join(member.pods) or f"{member.name}/{member.index}"
                yield (
                    gang.namespace,
                    gang.name,
                    names,
                    "",
                    gang.verdict,
                    member.node,
                    "",
                )


def _to_row(claim: dict[str, Any]) -> tuple[str, ...]:
    """Make the row of a claim: its devices by request."""
    results = claim.get("allocation", {}).get("devices", {}).get("results", [])
    by_request: dict[str, list[str]] = {}
    for result in results:
        by_request.setdefault(result["request"], []).append(result["device"])
    devices = "  ".join(
        f"{request}: {', '.join(names)}" for request, names in by_request.items()
    )
    pod = claim.get("pod") or f"{claim['member']}/{claim['index']}"
    node = claim.get("node") or ""
    return (claim["gang"], pod, claim["claim"], claim["verdict"], node, devices)
