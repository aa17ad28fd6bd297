"""Prints the explanation of a gang for people."""

from __future__ import annotations

from typing import Any

from contracts.gang import GangPhase
from moorings.cli.output import say
from moorings.views.gangs import UNDECIDED
from moorings.views.reasons import describe_facts

NONE = "<none>"
"""As kubectl shows missing values."""
MOST_LINES = 20
MOST_NAMES = 5


def print_explanation(explanation: dict[str, Any]) -> None:
    """Print what is known of a gang, for people."""
    name = f"{explanation['namespace']}/{explanation['name']}"
    origin = [
        f"{what} {explanation[what]}"
        for what in ("attempt", "solve")
        if explanation[what]
    ]
    suffix = f" ({', '.join(origin)})" if origin else ""
    say(f"{name}: {explanation['phase']}{suffix}")
    for reason in explanation["reasons"]:
        where = f" ({reason['subject']})" if reason["subject"] else ""
        field = f" {reason['field']}" if reason["field"] else ""
        say(f"  {reason['rule']}{field}{where}: {reason['message']}")
        if reason["facts"]:
            say(f"    {describe_facts(reason['facts'])}")
    if explanation["phase"] == GangPhase.PENDING and not explanation["reasons"]:
        say(f"  {explanation['reason'] or UNDECIDED}")
    for report in explanation["reports"]:
        say(f"  {report['reason']}: {report['message']}")
        if report["names"]:
            say(f"    {_name_pods(report)}")
    for member in explanation["members"][:MOST_LINES]:
        say(f"  {_describe_member(member)}")
    hidden = len(explanation["members"]) - MOST_LINES
    if hidden > 0:
        say(f"  ... and {hidden} more; use -o json")
    if explanation.get("namesOmitted"):
        say("  pods and claims are not named, as there are too many for one message")


def _name_pods(report: dict[str, Any]) -> str:
    """Name the pods of a report, or the first of them."""
    names = report["names"][:MOST_NAMES]
    hidden = report["pods"] - len(names)
    more = f" and {hidden} more" if hidden > 0 else ""
    return f"pods {', '.join(names)}{more}"


def _describe_member(member: dict[str, Any]) -> str:
    """Return where a member is and what it has: `worker/0 pod/a on n: gpu-0 of ...`."""
    pods = [f"pod/{name}" for name in member["pods"]]
    pods += [f"pod/{name} (gone)" for name in member["gone"]]
    claims = []
    for claim in member["claims"]:
        if not claim["held"]:
            continue
        devices = ", ".join(device.rsplit("/", 1)[-1] for device in claim["devices"])
        suffix = f" of resourceclaim/{claim['name']}" if claim["name"] else ""
        claims.append(f"{devices}{suffix}")
    head = f"{member['member']}/{member['index']}"
    named = ", ".join(pods)
    has = "; ".join(claims) or "holds no devices"
    return f"{f'{head} {named}'.strip()} on {member['node']}: {has}"
