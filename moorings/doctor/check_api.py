"""Checks what the API server serves, and its feature gates. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from contracts.features import default_gates, nearest_release
from contracts.kubernetes.decode import RESOURCE_GROUP
from moorings.doctor.facts import ClusterFacts, Unread
from moorings.doctor.findings import CheckLine, fail, ok, unread, warn
from moorings.views.names import name_some
from runtime.kube.kinds import DEVICE_TAINT_RULE, choose_kinds

OLDEST = "1.32"
"""The first release without classic DRA; it serves resource.k8s.io/v1beta1."""
WITH_V1 = "1.34"
"""The first release that serves resource.k8s.io/v1."""
_MAIN = "DynamicResourceAllocation"
_USED = (
    "DRAAdminAccess",
    "DRAConsumableCapacity",
    "DRADeviceBindingConditions",
    "DRADeviceTaintRules",
    "DRADeviceTaints",
    "DRAPartitionableDevices",
    "DRAPrioritizedList",
    "DRAResourceClaimDeviceStatus",
)
"""Gates that features of Moorings need."""


def check_api(facts: ClusterFacts) -> Iterator[CheckLine]:
    """Check release, served versions, the Gang kind and the feature gates."""
    yield _check_release(facts)
    yield from _check_served(facts)
    yield _check_gang(facts)
    yield from _check_gates(facts)


def _check_release(facts: ClusterFacts) -> CheckLine:
    name = "kubernetes.release"
    if not facts.release:
        return warn(
            name,
            f"{facts.server} does not report its version",
            "ask the cluster's administrator",
        )
    if _parse_release(facts.release) < _parse_release(OLDEST):
        return fail(
            name,
            f"Kubernetes {facts.release} has no {RESOURCE_GROUP}/v1beta1",
            f"upgrade to {WITH_V1} or newer; for 1.30 and 1.31 see docs/classic.md",
        )
    if _parse_release(facts.release) < _parse_release(WITH_V1):
        return warn(
            name,
            f"Kubernetes {facts.release} has no {RESOURCE_GROUP}/v1: no alternatives "
            "in requests, no taints of devices",
            f"apply k8s/overlays/kubernetes-1.33, and upgrade to {WITH_V1} or newer",
        )
    known = nearest_release(facts.release)
    if known != facts.release:
        return warn(
            name,
            f"Kubernetes {facts.release} is newer than this Moorings ({known})",
            "upgrade Moorings; until then gates have the defaults of the newest "
            "release it knows",
        )
    return ok(name, f"Kubernetes {facts.version} at {facts.server}")


def _check_served(facts: ClusterFacts) -> Iterator[CheckLine]:
    name = "kubernetes.served"
    if isinstance(facts.served, Unread):
        yield unread(name, facts.served)
        return
    versions = ", ".join(sorted(facts.served))
    kinds = choose_kinds(facts.served)
    if kinds is None:
        found = f"only {versions}" if versions else "nothing"
        yield fail(
            name,
            f"{RESOURCE_GROUP}: {found} is served, so no claim can be allocated",
            f"start kube-apiserver with --runtime-config={RESOURCE_GROUP}/v1=true",
        )
        return
    yield ok(name, f"{RESOURCE_GROUP}: {versions}; {kinds.resource_claim.version} used")
    if kinds.device_taint_rule is None:
        yield warn(
            "kubernetes.taint-rules",
            f"no {DEVICE_TAINT_RULE.name} is served: devices of other drivers "
            "cannot be kept for Moorings, and nodes cannot be drained",
            "use 1.36 or newer, with the gates DRADeviceTaints and DRADeviceTaintRules",
        )


def _check_gang(facts: ClusterFacts) -> CheckLine:
    name = "kubernetes.gang-kind"
    if isinstance(facts.gang_served, Unread):
        return unread(name, facts.gang_served)
    if not facts.gang_served:
        return warn(
            name,
            "Gang objects are not served; only gangs by label work",
            "kubectl apply -f k8s/crd",
        )
    return ok(name, "gangs.moorings.dev is served")


def _check_gates(facts: ClusterFacts) -> Iterator[CheckLine]:
    name = "kubernetes.gates"
    if isinstance(facts.gates, Unread):
        yield unread(name, facts.gates)
        return
    if not facts.gates.get(_MAIN, True):
        yield fail(
            name,
            f"{_MAIN} is off: kube-scheduler and kubelet ignore claims",
            "remove it from --feature-gates of all components",
        )
        return
    changed = _list_changed(facts.release, facts.gates)
    lost = [gate for gate in _USED if changed.get(gate) is False]
    if lost:
        yield warn(
            name,
            f"off, though on by default in this release: {name_some(lost)}; what "
            "needs them is not allocated",
            "remove them from --feature-gates, or set "
            f"SOLVER_FEATURE_GATES={_format_gates(changed)}",
        )
    elif changed:
        yield warn(
            name,
            f"changed from the defaults: {_format_gates(changed)}",
            f"set SOLVER_FEATURE_GATES={_format_gates(changed)}, unless the solver has "
            "it already",
        )
    else:
        yield ok(name, "all gates about devices have the release's defaults")


def _parse_release(release: str) -> tuple[int, ...]:
    return tuple(map(int, release.split(".")))


def _list_changed(release: str, gates: Mapping[str, bool]) -> dict[str, bool]:
    """List the gates of DRA that are not as a release has them by default."""
    if not release:
        return {}
    defaults = default_gates(nearest_release(release))
    return {
        name: gates[name]
        for name, on in sorted(defaults.items())
        if gates.get(name, on) != on
    }


def _format_gates(gates: Mapping[str, bool]) -> str:
    return ",".join(f"{name}={str(on).lower()}" for name, on in gates.items())
