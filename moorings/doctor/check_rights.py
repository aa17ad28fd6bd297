"""Checks that our service accounts have just the rights that they need. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from contracts.counts import counted
from moorings.doctor.facts import ClusterFacts, Review, Right, Unread
from moorings.doctor.findings import CheckLine, fail, ok, unread, warn
from moorings.doctor.rights import ACCOUNTS, FORBIDDEN, PEOPLE
from moorings.views.names import name_some


def check_rights(facts: ClusterFacts) -> Iterator[CheckLine]:
    """Check each service account, then say which roles of people we have."""
    if isinstance(facts.reviews, Unread):
        yield unread("rights", facts.reviews)
    else:
        installed = _list_installed(facts)
        for account in ACCOUNTS:
            own = [review for review in facts.reviews if review.persona == account]
            is_installed = installed is None or account in installed
            yield _check_account(account, own, is_installed=is_installed)
    if isinstance(facts.own_reviews, Unread):
        yield unread("rights.you", facts.own_reviews)
    else:
        yield _describe_own(facts.own_reviews)


def _list_installed(facts: ClusterFacts) -> frozenset[str] | None:
    """List the workloads where Moorings is installed; None: it is not known."""
    if isinstance(facts.workloads, Unread):
        return None
    return frozenset(str(item["metadata"]["name"]) for item in facts.workloads)


def _check_account(
    account: str, reviews: Iterable[Review], *, is_installed: bool
) -> CheckLine:
    """Check which rights an account lacks, and which it must not have.

    One without any, whose workload is not there either, is not installed: tokens are
    left out, or the services run elsewhere, as with `moorings up`.
    """
    name = f"rights.{account}"
    lacking, excess = [], []
    count = 0
    for review in reviews:
        forbidden = _is_forbidden(review.right)
        count += not forbidden
        if forbidden and review.allowed:
            excess.append(str(review.right))
        elif not forbidden and not review.allowed:
            lacking.append(str(review.right))
    if lacking and len(lacking) == count and not (excess or is_installed):
        return ok(name, "not installed here, and has no rights")
    if lacking:
        return fail(
            name,
            f"the service account lacks {len(lacking)} of {counted(count, 'right')}: "
            f"{name_some(lacking)}",
            "apply the ClusterRoles and bindings of k8s/base again",
        )
    if excess:
        return warn(
            name,
            f"the service account may {name_some(excess)}, which it does not need",
            "find the binding that grants it, and remove it",
        )
    needed = counted(count, "right")
    return ok(name, f"has the {needed} that it needs, and no dangerous ones")


def _is_forbidden(right: Right) -> bool:
    return right in FORBIDDEN


def _describe_own(reviews: Iterable[Review]) -> CheckLine:
    lacking: dict[str, list[str]] = {persona.name: [] for persona in PEOPLE}
    for review in reviews:
        if not review.allowed:
            lacking[review.persona].append(str(review.right))
    have = [name for name, rights in lacking.items() if not rights]
    lack = [
        f"{name} ({counted(len(rights), 'right')}, such as {rights[0]})"
        for name, rights in lacking.items()
        if rights
    ]
    said = f"you have the rights of {', '.join(have) or 'no role of Moorings'}"
    return ok("rights.you", f"{said}; not those of {'; '.join(lack)}" if lack else said)
