"""How kube-scheduler and kube-controller-manager are set up, as far as it shows. Pure.

Their settings are flags and files, which no API serves. The flags stand in the Pods of
a control plane that runs as Pods; kube-scheduler's file is asked for. Limits are those
that docs/performance.md measures.

Source: KubeSchedulerConfiguration v1; `kube-controller-manager --help` of 1.37.
"""

from __future__ import annotations

from collections.abc import Iterator

from moorings.doctor.control_plane_flags import read_flags
from moorings.doctor.facts import ClusterFacts, Json, Unread
from moorings.doctor.findings import CheckLine, fail, ok, unread, warn
from moorings.views.names import name_some

ENOUGH_QPS, ENOUGH_BURST = 75, 150
"""With these pods of lone Jobs start in time; large gangs want 500 and 1,000."""
_MANAGER, _SCHEDULER = "kube-controller-manager", "kube-scheduler"
_DEFAULT_LIMITS = {_MANAGER: (20.0, 30), _SCHEDULER: (50.0, 100)}
_DEFAULT_SYNCS = 50
_FEW_SYNCS = 10
_CLAIM_CONTROLLER = "resourceclaim-controller"
_NEEDED_PLUGINS = ("DynamicResources", "NodeAffinity", "SchedulingGates")
"""Without one of them pods start without their devices, elsewhere, or never."""
_SLOW = (
    "each claim of a template takes two of its requests, so gangs wait long for "
    "their claims"
)


def check_control_plane(facts: ClusterFacts) -> Iterator[CheckLine]:
    """Check the limits of the controller manager, and the scheduler's plugins."""
    if isinstance(facts.control_plane, Unread):
        yield unread("controller-manager.limits", facts.control_plane)
    else:
        flags = read_flags(facts.control_plane, _MANAGER)
        yield from _check_manager(flags) if flags else (_hidden_manager(),)
    yield from _check_scheduler(facts)


def _hidden_manager() -> CheckLine:
    return warn(
        "controller-manager.limits",
        f"unknown: {_MANAGER} has no Pod in kube-system",
        f"ask whoever runs it for --kube-api-qps={ENOUGH_QPS} "
        f"--kube-api-burst={ENOUGH_BURST} or more: the defaults are 20 and 30, "
        f"and {_SLOW}",
    )


def _check_manager(flags: dict[str, str]) -> Iterator[CheckLine]:
    chosen = flags.get("controllers", "*").split(",")
    is_named = _CLAIM_CONTROLLER in chosen or "*" in chosen
    if not is_named or f"-{_CLAIM_CONTROLLER}" in chosen:
        yield fail(
            "controller-manager.controllers",
            f"{_CLAIM_CONTROLLER} does not run: no claims are made from templates "
            "or freed when pods end",
            "add it, or *, to --controllers",
        )
    yield _check_limits(
        _MANAGER, flags.get("kube-api-qps"), flags.get("kube-api-burst")
    )
    syncs = _parse_number(flags.get("concurrent-resourceclaim-syncs"), _DEFAULT_SYNCS)
    if syncs < _FEW_SYNCS:
        yield warn(
            "controller-manager.syncs",
            f"--concurrent-resourceclaim-syncs={syncs:g}: {_SLOW}",
            f"remove the flag: the default is {_DEFAULT_SYNCS}",
        )


def _check_limits(component: str, qps: object, burst: object) -> CheckLine:
    """Check how many requests a second a component may send, and how many at once."""
    name = f"{component.removeprefix('kube-')}.limits"
    usual_qps, usual_burst = _DEFAULT_LIMITS[component]
    rate, most = _parse_number(qps, usual_qps), _parse_number(burst, usual_burst)
    said = f"{component} may send {rate:g} requests a second, {most:g} at once"
    wanted = (ENOUGH_QPS, ENOUGH_BURST)
    if component == _SCHEDULER:
        wanted = (int(usual_qps), usual_burst)
    # A negative rate is none.
    if 0 <= rate < wanted[0] or (rate >= 0 and most < wanted[1]):
        slow = _SLOW if component == _MANAGER else "pods are bound slowly"
        return warn(
            name,
            f"{said}: {slow}",
            f"set {wanted[0]} and {wanted[1]} or more; for gangs of hundreds of pods "
            "500 and 1000 (docs/performance.md)",
        )
    return ok(name, said)


def _parse_number(value: object, default: float) -> float:
    """Read a number of a flag or file; what is none is the default, as 0 is there."""
    try:
        return float(str(value)) or default
    except ValueError:
        return default


def _check_scheduler(facts: ClusterFacts) -> Iterator[CheckLine]:
    name, config = "scheduler.plugins", facts.scheduler_config
    if config is not None:
        yield from _check_config(config)
        return
    pods = facts.control_plane
    flags = {} if isinstance(pods, Unread) else read_flags(pods, _SCHEDULER)
    if not flags or "config" in flags:
        where = flags.get("config", "its own host")
        yield warn(
            name,
            f"unknown: no API serves the configuration that {_SCHEDULER} has in "
            f"{where}",
            "give a copy of it: --scheduler-config FILE",
        )
        return
    yield ok(name, f"{_SCHEDULER} has no configuration of its own: all plugins are on")
    yield _check_limits(
        _SCHEDULER, flags.get("kube-api-qps"), flags.get("kube-api-burst")
    )


def _check_config(config: Json) -> Iterator[CheckLine]:
    name = "scheduler.plugins"
    profiles: list[Json] = config.get("profiles") or [{}]
    for profile in profiles:
        who = profile.get("schedulerName") or "default-scheduler"
        off = _list_disabled(profile)
        if off:
            yield fail(
                name,
                f"profile {who} disables {name_some(off)}",
                "enable them at multiPoint, or keep pods with devices off this profile",
            )
            continue
        arguments = _read_arguments(profile)
        filtering = arguments.get("filterTimeout") or "10s"
        binding = arguments.get("bindingTimeout") or "10m0s"
        yield ok(
            name,
            f"profile {who}: {', '.join(_NEEDED_PLUGINS)} are on; DynamicResources "
            f"filters a node for {filtering} at most, and waits {binding} for devices "
            "to be bound",
        )
    connection = config.get("clientConnection") or {}
    yield _check_limits(_SCHEDULER, connection.get("qps"), connection.get("burst"))


def _list_disabled(profile: Json) -> list[str]:
    """List the needed plugins that a profile switches off at any of its points."""
    off: set[str] = set()
    for point in (profile.get("plugins") or {}).values():
        enabled = {entry["name"] for entry in point.get("enabled") or ()}
        disabled = {entry["name"] for entry in point.get("disabled") or ()}
        gone = set(_NEEDED_PLUGINS) if "*" in disabled else disabled
        off |= gone & set(_NEEDED_PLUGINS) - enabled
    return sorted(off)


def _read_arguments(profile: Json) -> Json:
    for entry in profile.get("pluginConfig") or ():
        if entry.get("name") == "DynamicResources":
            return entry.get("args") or {}
    return {}
