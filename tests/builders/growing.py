"""Gangs that are in with fewer pods than they ask for, and their end."""

from __future__ import annotations

from typing import Any

from contracts.gang import Gang
from contracts.ids import GangKey, GangUID, Namespace
from contracts.messages import GangReleased, ReleaseGang, ReleaseOutcome
from tests.builders import gang, member, member_claim, request
from tests.builders.problems import CLUSTER
from tests.builders.solving import Solving


def key(number: int, namespace: str = "default") -> GangKey:
    """Name a gang by its number."""
    uid = GangUID(f"00000000-0000-4000-8000-{number:012}")
    return GangKey(Namespace(namespace), uid)


def asking(
    number: int,
    pods: int,
    least: int | None = None,
    *,
    namespace: str = "default",
    **spec: Any,
) -> Gang:
    """Ask for pods of one device each."""
    wanted = member(member_claim(request()), count=pods, min_count=least)
    return gang(
        wanted, name=f"g{number}", uid=key(number).uid, namespace=namespace, **spec
    )


def end(solving: Solving, number: int, namespace: str = "default") -> None:
    """Let a gang end as the service does."""
    about: dict[str, Any] = {
        "cluster": CLUSTER,
        "namespace": Namespace(namespace),
        "uid": key(number).uid,
    }
    solving.hear(ReleaseGang(**about))
    outcome = ReleaseOutcome.COMPLETED
    solving.hear(GangReleased(**about, name=f"g{number}", epoch=1, outcome=outcome))
