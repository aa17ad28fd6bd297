"""`moorings simulate`: a trace on a fleet in virtual time; no server needed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from msgspec import structs

from contracts.counts import counted, listed
from contracts.durations import parse_duration
from moorings.cli.exit_codes import ExitCode
from moorings.cli.options import Output, Progress
from moorings.cli.output import Format, notify, say, show, show_progress, show_table
from moorings.errors import BadInputError, UsageError
from moorings.local.fleets import find_fleet
from moorings.simulate.traces.read import read_trace
from moorings.simulate.traces.trace import Trace
from solver.cel.evaluator import SelectorEvaluator
from solver.service.garbage import after_batch, collecting_between_batches

if TYPE_CHECKING:
    from moorings.simulate.cluster import SimulatedCluster
    from moorings.simulate.course import Policy
    from moorings.simulate.measure import Report, Waits

MOST_JOBS, MOST_NODES = 20_000, 2_000
"""More are simulated only with `--limit`."""
MOST_POLICIES = 2
MOST_NAMED = 10
RESERVATIONS, NONE = "reservations", "none"
COLUMNS = ("of", "policy", "jobs", "started", "mean", "median", "99 %", "longest")


def register(app: typer.Typer) -> None:
    """Add this command to the app."""
    app.command()(simulate)


def simulate(
    trace: Annotated[
        Path,
        typer.Option(
            "--trace",
            "-t",
            metavar="FILE",
            help="Trace: .swf (Standard Workload Format), .csv (openb) or .json "
            "(Philly), also packed as .gz.",
            show_default=False,
        ),
    ],
    fleet: Annotated[
        str, typer.Option(help="`openb`, `small` or a fleet file.")
    ] = "openb",
    policy: Annotated[
        list[str] | None,
        typer.Option(
            metavar="POLICY",
            help="reservations, none (devices are kept for nobody), or "
            "reservations=PATIENCE; twice for both side by side.",
            show_default=False,
        ),
    ] = None,
    patience: Annotated[
        str,
        typer.Option(
            metavar="DURATION",
            help="How long a job waits before devices are kept for it.",
        ),
    ] = "30m",
    limit: Annotated[
        int | None,
        typer.Option(
            min=1,
            help=f"Take only so many jobs, the first; needed beyond {MOST_JOBS:,} jobs "
            f"or {MOST_NODES:,} nodes.",
            show_default=False,
        ),
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write a page with plots here, too.",
            show_default=False,
        ),
    ] = None,
    progress: Progress = False,
    output: Output = Format.TABLE,
) -> None:
    """Simulate the jobs of a trace on a fleet: waits, utilisation, promises.

    Virtual time over the code that decides beside a cluster: the same input gives the
    same bytes. Ctrl-C ends it with what is known by then. Exit 0 only when it came to
    its end and every promise was kept or moved for a reason.

    moorings simulate -t KTH-SP2-1996-2.1-cln.swf.gz --fleet fleet.yaml --html sim.html

    moorings simulate -t openb.csv --policy none --policy reservations --limit 2000
    """
    policies = _read_policies(policy or [RESERVATIONS], patience)
    read = _limit(read_trace(trace), limit, trace)
    file = find_fleet(fleet)
    with SelectorEvaluator() as evaluator, collecting_between_batches():
        # OR-Tools is slow to import.
        from moorings.simulate.cluster import read_cluster  # noqa: PLC0415
        from moorings.simulate.page import write_page  # noqa: PLC0415

        cluster = read_cluster(file)
        if limit is None and cluster.nodes > MOST_NODES:
            nodes = counted(cluster.nodes, "node")
            raise UsageError(f"{fleet} has {nodes}, which may take long; see --limit")
        reports, is_whole = _run(cluster, read, policies, evaluator, asked=progress)
    if html is not None:
        title = f"{trace.name} on {fleet}"
        _write(html, write_page(title, reports, cluster.devices))
    if output is Format.TABLE:
        _print(reports, read, cluster)
    else:
        show(reports, output, (), ())
    if not is_whole:
        raise typer.Exit(ExitCode.INTERRUPTED)
    broken = any(report.promises.broken for report in reports)
    raise typer.Exit(ExitCode.NO if broken else ExitCode.YES)


def _read_policies(names: list[str], patience: str) -> list[Policy]:
    """Read the policies of a command line.

    Raises:
        UsageError: there are too many, or one is none.
    """
    from moorings.simulate.course import Policy  # noqa: PLC0415  # imports OR-Tools
    from solver.timeline.patience import NEVER  # noqa: PLC0415  # imports OR-Tools

    if len(names) > MOST_POLICIES:
        raise UsageError(f"--policy may be given {MOST_POLICIES} times, not more")
    if len(set(names)) < len(names):
        raise UsageError(f"--policy {names[0]} is given twice")
    policies = []
    for name in names:
        kind, _, own = name.partition("=")
        if kind not in {RESERVATIONS, NONE} or (kind == NONE and own):
            raise UsageError(
                f"--policy is {RESERVATIONS}, {RESERVATIONS}=30m or {NONE}, not "
                f"{name!r}"
            )
        patience_s = NEVER if kind == NONE else _read_patience(own or patience)
        policies.append(Policy(name=name, patience_s=patience_s))
    return policies


def _read_patience(text: str) -> int:
    if text in {"0", "0s"}:
        return 0
    try:
        return parse_duration(text)
    except ValueError as error:
        raise UsageError(f"patience {text!r}: {error}") from error


def _limit(trace: Trace, limit: int | None, file: Path) -> Trace:
    """Take the first jobs of a trace.

    Raises:
        UsageError: there are many, and nobody said how many are meant.
    """
    if limit is not None:
        return structs.replace(trace, jobs=trace.jobs[:limit])
    if len(trace.jobs) > MOST_JOBS:
        jobs = counted(len(trace.jobs), "job")
        raise UsageError(
            f"{file} has {jobs}, which may take long; --limit N takes the first"
        )
    return trace


def _run(
    cluster: SimulatedCluster,
    trace: Trace,
    policies: list[Policy],
    evaluator: SelectorEvaluator,
    *,
    asked: bool,
) -> tuple[list[Report], bool]:
    """Simulate each policy; the second value is False if Ctrl-C ended it."""
    from moorings.deciding import Judged  # noqa: PLC0415  # imports OR-Tools
    from moorings.simulate.course import Course  # noqa: PLC0415  # likewise
    from moorings.simulate.fitting import find_hopeless  # noqa: PLC0415  # likewise
    from moorings.simulate.measure import measure  # noqa: PLC0415  # likewise

    reports: list[Report] = []
    is_whole = True
    with show_progress("simulating", asked=asked) as tell:
        judged = Judged(evaluator.evaluate)
        hopeless = find_hopeless(cluster, trace.jobs, judged)
        jobs = [job for job in trace.jobs if job.name not in hopeless]
        for policy in policies:
            course = Course(cluster, jobs, policy, judged)
            try:
                for _ in course.run():
                    tell(f"simulating {policy.name}: {course.ended:,} of {len(jobs):,}")
                    after_batch()
            except KeyboardInterrupt:
                is_whole = False
                notify("interrupted: this is what is known by now")
            report = measure(
                policy.name,
                list(course.stays.values()),
                devices=cluster.devices,
                now_s=course.now_s,
                left_out=hopeless,
            )
            reports.append(report)
            if not is_whole:
                break
    return reports, is_whole


def _write(file: Path, text: str) -> None:
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise BadInputError(str(file), str(error.strerror)) from error


def _pair_waits(reports: list[Report]) -> Iterator[tuple[Report, Waits]]:
    """Yield the waits of the same jobs one after the other."""
    names = dict.fromkeys(waits.of for report in reports for waits in report.waits)
    for name in names:
        for report in reports:
            yield from ((report, each) for each in report.waits if each.of == name)


def _print(reports: list[Report], trace: Trace, cluster: SimulatedCluster) -> None:
    from moorings.simulate.page import describe_seconds  # noqa: PLC0415  # with measure

    rows = [
        (
            waits.of,
            report.policy,
            waits.jobs,
            waits.started,
            describe_seconds(waits.mean_s),
            describe_seconds(waits.median_s),
            describe_seconds(waits.p99_s),
            describe_seconds(waits.most_s),
        )
        for report, waits in _pair_waits(reports)
    ]
    show_table(COLUMNS, rows)
    for report in reports:
        promises = report.promises
        say(
            f"{report.policy}: {report.started:,} of {report.jobs:,} jobs started, "
            f"utilisation {report.utilisation:.1%} of {cluster.devices:,} devices; "
            f"{promises.made:,} promises, {promises.kept:,} kept, "
            f"{promises.moved_later:,} moved later"
        )
    if trace.left_out:
        are = counted(len(trace.left_out), "job is", "jobs are")
        first = trace.left_out[0]
        notify(f"{are} left out of the trace; {first.name}: {first.reason}")
    if hopeless := reports[0].left_out:
        names = listed(hopeless[:MOST_NAMED])
        more = f" and {len(hopeless) - MOST_NAMED} more"
        rest = more if len(hopeless) > MOST_NAMED else ""
        notify(f"can never fit, and left out: {names}{rest}")
