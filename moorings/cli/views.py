"""How gangs, their pods and their claims are shown, by the names that kubectl has.

The solver numbers the pods of a member. Which pod and claims they became is what the
publisher said when it had written them; without a cluster there are claims only.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from contracts.lifecycle import GangRecord
from contracts.messages import AllocationWritten, MemberAllocated, PodWritten
from moorings.cli.output import console, format_age

WAITING = "waiting to be decided"
NONE = "<none>"
"""What kubectl shows where there is nothing."""
MOST_LINES = 20


def view_gang(record: GangRecord) -> dict[str, Any]:
    """Return the row of a gang."""
    spec = record.submission.gang.spec if record.submission is not None else None
    decision = record.placed
    return {
        "namespace": record.namespace,
        "name": record.name,
        "uid": record.uid,
        "phase": str(record.phase),
        "priority": spec.priority if spec is not None else 0,
        "pods": sum(member.count for member in spec.members) if spec is not None else 0,
        "nodes": len({member.node for member in decision.members}) if decision else 0,
        "attempt": record.attempt,
        "age": format_age(_measure_age(record)),
        "reason": str(record.reasons[0]) if record.reasons else _describe_wait(record),
    }


def _describe_wait(record: GangRecord) -> str:
    if record.decision is None:
        return WAITING
    return "ending" if record.ending is not None else ""


def _measure_age(record: GangRecord) -> float:
    text = record.submission.submitted_at if record.submission is not None else ""
    try:
        return (datetime.now(UTC) - datetime.fromisoformat(text)).total_seconds()
    except ValueError:
        return 0.0


def view_members(
    record: GangRecord, written: AllocationWritten | None
) -> Iterator[dict[str, Any]]:
    """Return where each member of a placed gang is, and what became of it."""
    pods: defaultdict[tuple[str, int], list[PodWritten]] = defaultdict(list)
    for pod in written.pods if written is not None else ():
        pods[pod.member, pod.index].append(pod)
    # Without a cluster the claims have the names that the decision gives them.
    names_decided = (
        written is not None and not written.pods and not written.pods_omitted
    )
    for member in record.placed.members if record.placed is not None else ():
        yield _view_member(
            member, pods[member.member, member.index], names_decided=names_decided
        )


def _view_member(
    member: MemberAllocated, pods: list[PodWritten], *, names_decided: bool
) -> dict[str, Any]:
    names = {claim: name for pod in pods for claim, name in pod.claims.items()}
    claims = []
    for claim in member.claims:
        devices = [str(r.device_id) for r in claim.allocation.devices.results]
        name = claim.ref.name if names_decided else names.get(claim.claim, "")
        claims.append({"claim": claim.claim, "name": name, "devices": devices})
    return {
        "member": member.member,
        "index": member.index,
        "node": member.node,
        "pods": [pod.pod for pod in pods],
        "claims": claims,
        "devices": [device for claim in claims for device in claim["devices"]],
    }


def view_pods(
    record: GangRecord, written: AllocationWritten | None
) -> Iterator[dict[str, Any]]:
    """Return a row for each pod of a placed gang: where it is and what it has."""
    for member in view_members(record, written):
        for name in member["pods"] or [""]:
            yield {
                "namespace": record.namespace,
                "name": name,
                "gang": record.name,
                "member": f"{member['member']}/{member['index']}",
                "node": member["node"],
                "devices": len(member["devices"]),
                "claims": [claim["name"] for claim in member["claims"]],
            }


def explain_gang(
    record: GangRecord, written: AllocationWritten | None = None
) -> dict[str, Any]:
    """Return all that is known of a gang."""
    return {
        **view_gang(record),
        "reasons": [
            {
                "rule": str(reason.rule),
                "subject": reason.subject,
                "field": reason.field,
                "message": reason.message,
                "facts": reason.facts,
            }
            for reason in record.reasons
        ],
        "members": list(view_members(record, written)),
        "namesOmitted": written is not None and written.pods_omitted,
        "solve": getattr(record.decision, "solve", ""),
    }


def print_explanation(explanation: dict[str, Any]) -> None:
    """Print what is known of a gang, for people."""
    name = f"{explanation['namespace']}/{explanation['name']}"
    origin = [
        f"{what} {explanation[what]}"
        for what in ("attempt", "solve")
        if explanation[what]
    ]
    suffix = f" ({', '.join(origin)})" if origin else ""
    console.print(f"{name}: {explanation['phase']}{suffix}", markup=False)
    for reason in explanation["reasons"]:
        where = f" ({reason['subject']})" if reason["subject"] else ""
        field = f" {reason['field']}" if reason["field"] else ""
        console.print(
            f"  {reason['rule']}{field}{where}: {reason['message']}", markup=False
        )
        facts = ", ".join(f"{key} {value}" for key, value in reason["facts"].items())
        if facts:
            console.print(f"    counted: {facts}", markup=False)
    for member in explanation["members"][:MOST_LINES]:
        console.print(f"  {_describe_member(member)}", markup=False)
    hidden = len(explanation["members"]) - MOST_LINES
    if hidden > 0:
        console.print(f"  ... and {hidden} more (-o json shows all)")
    if explanation["namesOmitted"]:
        console.print("  pods and claims are not named: too many for one message")


def _describe_member(member: dict[str, Any]) -> str:
    """Return where a member is and what it has: `worker/0 pod/a on n: gpu-0 of ...`."""
    pods = ", ".join(f"pod/{name}" for name in member["pods"])
    claims = []
    for claim in member["claims"]:
        devices = ", ".join(device.rsplit("/", 1)[-1] for device in claim["devices"])
        suffix = f" of resourceclaim/{claim['name']}" if claim["name"] else ""
        claims.append(f"{devices}{suffix}")
    head = f"{member['member']}/{member['index']}"
    return f"{f'{head} {pods}'.strip()} on {member['node']}: {'; '.join(claims)}"
