"""`moorings lint`: what in these objects would only fail at run time."""

from __future__ import annotations

from typing import Annotated

import typer

from contracts.counts import counted
from contracts.features import DEFAULT_VERSION
from moorings.cli.documents import read_objects
from moorings.cli.exit_codes import ExitCode
from moorings.cli.options import Filenames, Output
from moorings.cli.output import Format, say, show, show_progress
from moorings.lint.findings import Lint
from moorings.lint.lint import lint as lint_objects
from moorings.plan.limits import parse_gates, read_features
from solver.cel.evaluator import SelectorEvaluator


def register(app: typer.Typer) -> None:
    """Add this command to the app."""
    app.command()(lint)


def lint(
    filename: Filenames,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit 1 for warnings, too.")
    ] = False,
    feature_gates: Annotated[
        str, typer.Option(help="Feature gates of the cluster: Name=true,...")
    ] = "",
    kubernetes_version: Annotated[
        str, typer.Option(help="Kubernetes release, for the defaults of feature gates.")
    ] = DEFAULT_VERSION,
    output: Output = Format.TABLE,
) -> None:
    """Find mistakes in classes, slices, claims and gangs before they fail at run time.

    Such as selectors that fail on real devices, classes and requests that match none,
    constraints that no node can meet, unusable pools, values over limits. Exit 0: no
    errors; 1: errors; 3: something could not be read.

    kubectl get resourceslices,deviceclasses -o yaml | moorings lint -f - -f claim.yaml
    """
    features = read_features(kubernetes_version, parse_gates(feature_gates))
    read = read_objects(filename, as_stored=True)
    with SelectorEvaluator() as evaluator, show_progress("linting"):
        result = lint_objects(read.objects, features, evaluator)
    if output is Format.TABLE:
        _print_findings(result, failed=read.failed)
    else:
        show(result, output, (), ())
    if read.failed:
        raise typer.Exit(ExitCode.ERROR)
    is_wrong = result.errors or (strict and result.warnings)
    raise typer.Exit(ExitCode.NO if is_wrong else ExitCode.YES)


def _print_findings(result: Lint, *, failed: bool) -> None:
    subject = ""
    for finding in result.findings:
        if finding.subject != subject:
            subject = finding.subject
            say(subject, bold=True)
        place = f" {finding.field}" if finding.field else ""
        text = f"  {finding.severity}: {finding.rule}{place}: {finding.message}"
        say(text)
    say(
        f"{counted(result.errors, 'error')}, {counted(result.warnings, 'warning')} in "
        f"{counted(result.objects, 'object')} with {counted(result.devices, 'device')}"
        + ("; not all of the input could be read" if failed else ""),
    )
