"""What is wrong with classes and requests, held against the devices of the input."""

from __future__ import annotations

from collections.abc import Iterator

from contracts.allocation import MAX_DEVICES
from contracts.claim import DeviceClass
from moorings.lint.all_requests import Asking
from moorings.lint.findings import Finding, LintRule, Severity
from moorings.lint.matches import Matches
from solver.problem.problem import RequestPart, SubrequestPart


def check_class(item: DeviceClass, matches: Matches) -> Iterator[Finding]:
    """Hold a class against all devices."""
    name = item.metadata.name
    selectors = tuple(s.cel.expression if s.cel else "" for s in item.spec.selectors)
    found = matches.of(selectors)
    for index, faults in found.faults.items():
        yield Finding(
            severity=Severity.ERROR,
            kind="DeviceClass",
            name=name,
            field=f"spec.selectors[{index}]",
            rule=LintRule.SELECTOR_ERROR,
            message=faults,
        )
    if not found.devices and not found.faults and matches.total:
        yield Finding(
            severity=Severity.WARNING,
            kind="DeviceClass",
            name=name,
            rule=LintRule.CLASS_EMPTY,
            message=f"none of the {matches.total} devices of the input is of it",
        )


def check_asking(asking: Asking, matches: Matches) -> Iterator[Finding]:
    """Hold the requests of a claim against all devices."""
    least = 0
    for number, request in enumerate(asking.part.requests):
        path = f"{asking.path}.devices.requests[{number}]"
        counts = [0 if s.all_devices else s.count for s in request.alternatives]
        least += min(counts, default=0)
        yield from _request(asking, request, path, matches)
    if least > MAX_DEVICES:
        message = f"asks for {least} devices; a claim has at most {MAX_DEVICES}"
        path = f"{asking.path}.devices.requests"
        yield asking.finding(path, LintRule.DEVICE_LIMIT, message)


def _request(
    asking: Asking, request: RequestPart, path: str, matches: Matches
) -> Iterator[Finding]:
    if request.fault:
        yield asking.finding(path, LintRule.INVALID, request.fault)
    earlier: list[SubrequestPart] = []
    for rank, asked in enumerate(request.alternatives):
        place = f"{path}.firstAvailable[{rank}]" if asked.name else f"{path}.exactly"
        same = [sub for sub in earlier if _is_same(sub, asked)]
        if same:
            message = f"is equal to {same[0].name}, which is tried before it"
            rule = LintRule.ALTERNATIVE_UNREACHABLE
            yield asking.finding(place, rule, message, Severity.WARNING)
        earlier.append(asked)
        yield from _subrequest(asking, asked, place, matches)


def _is_same(one: SubrequestPart, other: SubrequestPart) -> bool:
    return (
        one.selectors == other.selectors
        and (one.all_devices, one.count) == (other.all_devices, other.count)
        and (one.tolerations, one.capacity) == (other.tolerations, other.capacity)
    )


def _subrequest(
    asking: Asking, asked: SubrequestPart, place: str, matches: Matches
) -> Iterator[Finding]:
    if asked.fault:
        unknown = "could not retrieve device class" in asked.fault
        rule = LintRule.UNKNOWN_CLASS if unknown else LintRule.INVALID
        message = asked.fault.partition(": ")[2]
        yield asking.finding(place, rule, message)
        return
    found = matches.of(asked.selectors)
    own = {
        index - asked.class_selectors: text
        for index, text in found.faults.items()
        if index >= asked.class_selectors
    }
    for index, text in own.items():
        field = f"{place}.selectors[{index}]"
        yield asking.finding(field, LintRule.SELECTOR_ERROR, text)
    if not matches.total or found.faults:
        return
    if not found.devices:
        message = f"none of the {matches.total} devices of the input matches"
        rule = LintRule.REQUEST_EMPTY
        yield asking.finding(place, rule, message, Severity.WARNING)
    elif not matches.with_capacity(asked):
        message = (
            f"{len(found.devices)} devices match, but none can give "
            f"{', '.join(f'{name}={q}' for name, q in sorted(asked.capacity.items()))}"
        )
        rule = LintRule.CAPACITY
        yield asking.finding(f"{place}.capacity", rule, message, Severity.WARNING)
