"""Label selectors, as objects of every API group hold them.

Source: k8s.io/apimachinery meta/v1 LabelSelector. Knows no kind of object.
"""

from __future__ import annotations

from collections.abc import Mapping

from contracts.device import NodeSelectorRequirement
from contracts.structs import KubernetesStruct


class LabelSelectorRequirement(KubernetesStruct, frozen=True, kw_only=True):
    """One comparison of a label."""

    key: str = ""
    operator: str = ""
    """`In`, `NotIn`, `Exists` or `DoesNotExist`."""
    values: tuple[str, ...] = ()


class LabelSelector(KubernetesStruct, frozen=True, kw_only=True):
    """Labels that must all be there; empty, it selects everything."""

    match_labels: dict[str, str] = {}
    match_expressions: tuple[LabelSelectorRequirement, ...] = ()


def does_match(selector: LabelSelector, labels: Mapping[str, str]) -> bool:
    """True if a selector matches these labels.

    An operator that is not known selects nothing.
    """
    return all(
        labels.get(key) == value for key, value in selector.match_labels.items()
    ) and all(holds(one, labels) for one in selector.match_expressions)


def holds(
    requirement: LabelSelectorRequirement | NodeSelectorRequirement,
    labels: Mapping[str, str],
) -> bool:
    """True if labels meet one requirement; an unknown operator is never met."""
    value = labels.get(requirement.key)
    match requirement.operator:
        case "In":
            return value is not None and value in requirement.values
        case "NotIn":
            return value is None or value not in requirement.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case _:
            return False
