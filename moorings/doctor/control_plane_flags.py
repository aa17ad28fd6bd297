"""The flags of a control plane's components, as their Pods show them. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from moorings.doctor.facts import Json


def read_flags(pods: Sequence[Json], component: str) -> dict[str, str]:
    """Read the flags of a component from its Pod; empty: it has none here."""
    for pod in pods:
        labels = pod["metadata"].get("labels") or {}
        if component not in (labels.get("component"), labels.get("k8s-app")):
            continue
        for container in pod["spec"].get("containers") or ():
            words = [*(container.get("command") or ()), *(container.get("args") or ())]
            if any(component in word for word in words[:1]):
                pairs = (word.partition("=") for word in words if word.startswith("--"))
                return {"": component} | {
                    name.removeprefix("--"): value for name, _, value in pairs
                }
    return {}
