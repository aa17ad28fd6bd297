"""Prints the explanation of a gang for people."""

from __future__ import annotations

from typing import Any

from contracts.counts import counted, ordinal
from contracts.gang import GangPhase
from moorings.cli.output import say, show_table
from moorings.views.ages import format_age, measure_age
from moorings.views.gangs import UNDECIDED
from moorings.views.reasons import describe_facts
from moorings.views.times import show_time

NONE = "<none>"
"""As kubectl shows missing values."""
MOST_LINES = 20
MOST_NAMES = 5
_DECISION_COLUMNS = ("at", "decision", "solve", "detail")


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
    if since := explanation.get("waitsSince"):
        say(f"  waits since {show_time(since)} ({format_age(measure_age(since))})")
    if place := explanation.get("place"):
        say(f"  {_describe_place(place)}")
        if place["before"]:
            say(f"    after {_name_before(place)}")
    if expected := explanation.get("expectedStart"):
        say(f"  {_describe_expected(expected)}")
    for lacking in explanation.get("lacks", ()):
        say(f"  lacks {lacking}")
    if explanation["nodes"]:
        say(f"  {_describe_end(explanation)}")
    for reason in explanation["reasons"]:
        where = f" ({reason['subject']})" if reason["subject"] else ""
        field = f" {reason['field']}" if reason["field"] else ""
        say(f"  {reason['rule']}{field}{where}: {reason['message']}")
        if reason["facts"]:
            say(f"    {describe_facts(reason['facts'])}")
    for contested in explanation.get("contested", ()):
        say(f"  {_describe_devices(contested)}")
        if contested["holders"]:
            say(f"    held by {_name_holders(contested['holders'])}")
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
    if explanation.get("place"):
        _print_help(explanation.get("help"), name)
    if decisions := explanation.get("decisions"):
        say("")
        show_table(_DECISION_COLUMNS, map(_to_decision_row, decisions))


def _describe_expected(expected: dict[str, Any]) -> str:
    """Say when it starts at the latest, and what it waits for until then."""
    when = "starts in its turn, devices are kept for it"
    if time := expected["time"]:
        left_s = max(-measure_age(time), 0.0)
        when = f"starts by {show_time(time)} (in {format_age(left_s)}) at the latest"
    known = ", proven" if expected["proven"] else ", perhaps earlier"
    return f"{when}{known}: {expected['because']}"


def _describe_end(explanation: dict[str, Any]) -> str:
    """Say when a gang that has a place ends at the latest, as far as that is known."""
    duration, ends_by = explanation["duration"], explanation["endsBy"]
    if not ends_by:
        return f"no end known{'' if duration else ': it gives no duration'}"
    end, left_s = show_time(ends_by), -measure_age(ends_by)
    if left_s < 0:
        over = format_age(-left_s)
        return f"runs for longer than its duration {duration}: since {end} ({over})"
    return f"ends by {end} (in {format_age(left_s)}) at the latest: duration {duration}"


def _describe_place(place: dict[str, Any]) -> str:
    """Return the place in line, and who goes first."""
    first = []
    if count := place["higherPriority"]:
        first.append(f"{count} of higher priority")
    if count := place["olderInQueue"]:
        first.append(f"{count} older")
    if count := place["olderInNamespace"]:
        first.append(f"{count} older in its namespace")
    if (count := place["namespacesInTurn"]) > 1:
        first.append(f"{count} namespaces take turns")
    why = f": {', '.join(first)}" if first else ""
    if steps := place["byAge"]:
        why += f"; its age adds {steps} to its priority"
    if queue := place["queue"]:
        nth = ordinal(place["place"])
        return f"{nth} of {place['waiting']} in ClusterQueue {queue}{why}"
    return f"place {place['place']} of {place['waiting']} in line{why}"


def _name_before(place: dict[str, Any]) -> str:
    """Name the gangs that come first, or the first of them."""
    names = place["before"][:MOST_NAMES]
    parts = ("higherPriority", "olderInQueue", "olderInNamespace")
    hidden = sum(place[part] for part in parts) - len(names)
    return f"{', '.join(names)}{f' and {hidden} more' if hidden > 0 else ''}"


def _describe_devices(contested: dict[str, Any]) -> str:
    states = contested["states"]
    counts = (f"{count} {state.lower()}" for state, count in states.items() if count)
    total = counted(sum(states.values()), "device")
    return f"{total} of {contested['driver']}: {', '.join(counts)}"


def _name_holders(holders: list[dict[str, Any]]) -> str:
    """Name the holders that it would help most to end, or the first of them."""
    names = [
        f"{holder['gang']} ({counted(holder['devices'], 'device')}, priority "
        f"{holder['priority']})"
        for holder in holders[:MOST_NAMES]
    ]
    hidden = len(holders) - len(names)
    return f"{', '.join(names)}{f' and {hidden} more' if hidden > 0 else ''}"


def _print_help(help_found: dict[str, Any] | None, name: str) -> None:
    """Print which changes were tried and would let the gang in, or how to try some."""
    if help_found is None:
        say(f"  `moorings explain {name} --what-helps` tries what would let it in")
        return
    at = show_time(help_found["at"])
    say(f"  what helps, tried with solve {help_found['solve'][:16]} of {at}:")
    for tried in help_found["tried"]:
        say(f"    {'yes' if tried['helps'] else 'no ':<3}  {tried['text']}")
    if not help_found["tried"]:
        say("    nothing was found to try")
    elif not any(tried["helps"] for tried in help_found["tried"]):
        say("    none of the changes tried would be enough")


def _to_decision_row(event: dict[str, Any]) -> tuple[str, ...]:
    rules = (reason.partition(":")[0] for reason in event["reasons"])
    detail = ", ".join(rules) or event["detail"]
    solve = event["solve"][:16]
    return (show_time(event["at"]), event["what"], solve or NONE, detail or NONE)


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
