"""Guesses at what the author of an object with an unknown kind or field meant.

Only of the groups that decide devices, ours and DRA's: an object of theirs that is not
understood may be a gang or a claim. Kinds of other groups are others' business. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from difflib import get_close_matches

from contracts.counts import listed

_ALIKE = 0.75
"""How alike two words are of which one is the other misspelt."""
_NOT_NEEDED = {
    "moorings.dev": ("DeviceParameters", "Fleet", "Sources", "Workload"),
    "resource.k8s.io": ("PodSchedulingContext", "ResourcePoolStatusRequest"),
}
"""Kinds, by group, that are nothing to who decides."""
_REPLACED = {
    "ResourceClass": "DeviceClass",
    "ResourceClassParameters": "DeviceClass",
    "ResourceClaimParameters": "ResourceClaim",
}
"""Kinds of classic DRA, which is gone since Kubernetes 1.31, and what came instead."""
_UNDER_EXACTLY = re.compile(
    r"(.*\bdevices\.requests\[\d+\])\.(deviceClassName|selectors|allocationMode|count|"
    r"adminAccess|tolerations|capacity)\b.*"
)
"""Fields of a request that moved from v1beta1 to v1beta2."""


def explain_unknown(
    api_version: str, kind: str, known: Collection[tuple[str, str]]
) -> tuple[str, str] | None:
    """Return which field is wrong and why; None if the object is not meant for us.

    `known`: all pairs of an apiVersion and a kind that are read.
    """
    group = api_version.rpartition("/")[0]
    if group not in _NOT_NEEDED and not _find_same(kind, (k for _, k in known)):
        return None
    kinds = {
        our_group: list(dict.fromkeys(k for v, k in known if _is_of(v, our_group)))
        for our_group in _NOT_NEEDED
    }
    if group not in kinds:
        return _explain_group(api_version, group, kind, kinds, known)
    if kind in _NOT_NEEDED[group]:
        return None
    if kind in _REPLACED:
        return "kind", f"{kind} was removed with classic DRA; use {_REPLACED[kind]}"
    versions = _list_versions(group, kind, known)
    if versions:
        return (
            "apiVersion",
            f"{api_version} is not supported; {_enumerate_names(versions)}",
        )
    near = _find_near(kind, kinds[group])
    if near:
        return "kind", f"{kind} of {api_version} is unknown; did you mean {near}?"
    return (
        "kind",
        f"{kind} of {api_version} is unknown; {_enumerate_names(kinds[group])}",
    )


def explain_unknown_field(path: str) -> str:
    """Return where an unknown field may have been meant to be; empty: unknown."""
    found = _UNDER_EXACTLY.fullmatch(path)
    if found is None:
        return ""
    where, field = found.groups()
    return f"since v1beta2 it is at {where.rpartition('.')[2]}.exactly.{field}"


def _explain_group(
    api_version: str,
    group: str,
    kind: str,
    kinds: dict[str, list[str]],
    known: Collection[tuple[str, str]],
) -> tuple[str, str] | None:
    """Explain a kind of ours in no group, or in one that is named almost as ours."""
    for our_group, names in kinds.items():
        is_meant = not group or get_close_matches(group, [our_group], cutoff=_ALIKE)
        near = _find_same(kind, names)
        if is_meant and near:
            version = _list_versions(our_group, near, known)[0]
            reason = (
                f"{api_version} is not supported; did you mean {our_group}/{version}?"
            )
            return "apiVersion", reason
    return None


def _list_versions(
    group: str, kind: str, known: Collection[tuple[str, str]]
) -> list[str]:
    return [
        api_version.rpartition("/")[2]
        for api_version, each in known
        if each == kind and _is_of(api_version, group)
    ]


def _find_same(kind: str, names: Iterable[str]) -> str:
    return next((name for name in names if name.casefold() == kind.casefold()), "")


def _find_near(kind: str, names: list[str]) -> str:
    """Find the kind that is nearest to a misspelled one."""
    folded = {name.casefold(): name for name in names}
    near = get_close_matches(kind.casefold(), folded, n=1, cutoff=_ALIKE)
    return folded[near[0]] if near else ""


def _is_of(api_version: str, group: str) -> bool:
    return api_version.rpartition("/")[0] == group


def _enumerate_names(names: list[str]) -> str:
    """Write names with their verb: `v1, v1beta2 and v1beta1 are`."""
    return f"{listed(names)} {'is' if len(names) == 1 else 'are'}"
