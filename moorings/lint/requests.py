"""Checks classes and requests against the devices of the input."""

from __future__ import annotations

from collections.abc import Iterator

from contracts.allocation import MAX_DEVICES
from contracts.claim import DeviceClass
from contracts.counts import counted
from moorings.lint.claims import LintClaim
from moorings.lint.findings import Finding, LintRule, Severity
from moorings.lint.matches import Matches
from moorings.plan.limits import NO_ADMIN_ACCESS
from solver.problem.gangs import RequestPart, SubrequestPart


def check_class(device_class: DeviceClass, matches: Matches) -> Iterator[Finding]:
    """Hold a class against all devices."""
    name = device_class.metadata.name
    selectors = tuple(
        s.cel.expression if s.cel else "" for s in device_class.spec.selectors
    )
    matched = matches.of(selectors)
    for index, faults in matched.faults.items():
        yield Finding(
            severity=Severity.ERROR,
            kind="DeviceClass",
            name=name,
            field=f"spec.selectors[{index}]",
            rule=LintRule.SELECTOR_ERROR,
            message=faults,
        )
    if not matched.devices and not matched.faults and matches.total:
        yield Finding(
            severity=Severity.WARNING,
            kind="DeviceClass",
            name=name,
            rule=LintRule.CLASS_EMPTY,
            message=f"matches none of the input's {counted(matches.total, 'device')}",
        )


def check_claim(claim: LintClaim, matches: Matches) -> Iterator[Finding]:
    """Hold the requests of a claim against all devices."""
    least_devices = 0
    for number, request in enumerate(claim.part.requests):
        path = f"{claim.path}.devices.requests[{number}]"
        counts = [
            _count_all(s, matches) if s.all_devices else s.count
            for s in request.alternatives
        ]
        least_devices += min(counts, default=0)
        yield from _check_request(claim, request, path, matches)
    if least_devices > MAX_DEVICES:
        asked = counted(least_devices, "device")
        message = f"asks for {asked}; a claim has at most {MAX_DEVICES}"
        path = f"{claim.path}.devices.requests"
        yield claim.report(path, LintRule.DEVICE_LIMIT, message)


def _count_all(subrequest: SubrequestPart, matches: Matches) -> int:
    """Count the devices that `All` takes at least, where that may be too many."""
    if subrequest.fault or matches.of(subrequest.selectors).most_on_node <= MAX_DEVICES:
        return 0
    return matches.count_least(subrequest)


def check_admin_access(claim: LintClaim) -> Iterator[Finding]:
    """Refuse admin access, in a namespace that does not let it in."""
    for number, request in enumerate(claim.part.requests):
        if any(alternative.admin_access for alternative in request.alternatives):
            path = f"{claim.path}.devices.requests[{number}].exactly.adminAccess"
            yield claim.report(path, LintRule.INVALID, NO_ADMIN_ACCESS)


def _check_request(
    claim: LintClaim, request: RequestPart, path: str, matches: Matches
) -> Iterator[Finding]:
    if request.fault:
        yield claim.report(path, LintRule.INVALID, request.fault)
    earlier: list[SubrequestPart] = []
    for rank, subrequest in enumerate(request.alternatives):
        place = (
            f"{path}.firstAvailable[{rank}]" if subrequest.name else f"{path}.exactly"
        )
        same = [sub for sub in earlier if _is_same(sub, subrequest)]
        if same:
            message = f"is the same as {same[0].name}, which is tried before it"
            rule = LintRule.ALTERNATIVE_UNREACHABLE
            yield claim.report(place, rule, message, Severity.WARNING)
        earlier.append(subrequest)
        yield from _check_subrequest(claim, subrequest, place, matches)


def _is_same(one: SubrequestPart, other: SubrequestPart) -> bool:
    """True if both match the same devices, so that the second never helps."""
    return (
        not (one.fault or other.fault)
        and one.selectors == other.selectors
        and (one.all_devices, one.count) == (other.all_devices, other.count)
        and (one.tolerations, one.capacity) == (other.tolerations, other.capacity)
    )


def _check_subrequest(
    claim: LintClaim, subrequest: SubrequestPart, place: str, matches: Matches
) -> Iterator[Finding]:
    if subrequest.fault:
        if "could not retrieve device class" in subrequest.fault:
            message = f"{subrequest.device_class!r} does not exist"
            yield claim.report(place, LintRule.UNKNOWN_CLASS, message)
        else:
            message = subrequest.fault.partition(": ")[2]
            yield claim.report(place, LintRule.INVALID, message)
        return
    matched = matches.of(subrequest.selectors)
    own_faults = {
        index - subrequest.class_selectors: text
        for index, text in matched.faults.items()
        if index >= subrequest.class_selectors
    }
    for index, text in own_faults.items():
        field = f"{place}.selectors[{index}]"
        yield claim.report(field, LintRule.SELECTOR_ERROR, text)
    if not matches.total or matched.faults:
        return
    if not matched.devices:
        message = f"matches none of the input's {counted(matches.total, 'device')}"
        rule = LintRule.REQUEST_EMPTY
        yield claim.report(place, rule, message, Severity.WARNING)
    elif not matches.has_capacity(subrequest):
        capacity = (f"{name}={q}" for name, q in sorted(subrequest.capacity.items()))
        message = (
            f"{counted(len(matched.devices), 'device matches', 'devices match')}, but "
            f"none can give {', '.join(capacity)}"
        )
        rule = LintRule.CAPACITY
        yield claim.report(f"{place}.capacity", rule, message, Severity.WARNING)
