"""What is said of gangs: submissions, and the solver's decisions about them."""

from __future__ import annotations

from contracts.allocation import Reason
from contracts.gang import Gang
from contracts.ids import (
    ClaimRef,
    ClaimUID,
    ClusterName,
    GangUID,
    Namespace,
    NodeName,
    SolveID,
)
from contracts.messages import (
    ClaimAllocated,
    GangAllocated,
    GangPending,
    GangReleased,
    MemberAllocated,
    ReleaseOutcome,
    SubmitGang,
)
from tests.builders.claims import allocation, result
from tests.builders.gangs import gang as make_gang
from tests.builders.values import NAMESPACE, NODE, UID

CLUSTER = ClusterName("east")
DERIVED_UID = "6fa459ea-ee8a-5ca4-894e-db77e160355e"
"""A UUID made from a name, as the solver makes them."""


def submission(gang: Gang | None = None, *, uid: str = UID) -> SubmitGang:
    """Submit a gang: of one pod with one device unless it is given."""
    return SubmitGang(
        cluster=CLUSTER, uid=GangUID(uid), gang=gang or make_gang(uid=uid)
    )


def gang_allocated(
    *members: MemberAllocated,
    name: str = "train",
    uid: str = UID,
    attempt: int = 1,
    pods: int = 1,
) -> GangAllocated:
    """Allocate a gang: so many pods with one device each unless members are given."""
    return GangAllocated(
        cluster=CLUSTER,
        namespace=Namespace(NAMESPACE),
        name=name,
        uid=GangUID(uid),
        solve=SolveID("solve-1"),
        attempt=attempt,
        epoch=1,
        members=members
        or tuple(member_allocated(gang=name, index=index) for index in range(pods)),
    )


def member_allocated(
    *,
    gang: str = "train",
    member: str = "worker",
    index: int = 0,
    claim: str = "gpus",
    name: str = "",
    uid: str = DERIVED_UID,
    device: str = "",
    namespace: str = NAMESPACE,
) -> MemberAllocated:
    """Give one pod one device for one claim, named as the solver names it."""
    ref = ClaimRef(
        Namespace(namespace), name or f"{gang}-{member}-{index}-{claim}", ClaimUID(uid)
    )
    one = allocation(result(device or f"gpu-{index}"))
    return MemberAllocated(
        member=member,
        index=index,
        node=NodeName(NODE),
        claims=(ClaimAllocated(claim=claim, ref=ref, allocation=one),),
    )


def gang_pending(uid: str = UID, *, reasons: tuple[Reason, ...] = ()) -> GangPending:
    """Let a gang wait again."""
    return GangPending(
        cluster=CLUSTER,
        namespace=Namespace(NAMESPACE),
        name="train",
        uid=GangUID(uid),
        solve=SolveID("solve-2"),
        attempt=1,
        epoch=1,
        reasons=reasons,
    )


def gang_released(uid: str = UID) -> GangReleased:
    """End a gang whose work is done."""
    return GangReleased(
        cluster=CLUSTER,
        namespace=Namespace(NAMESPACE),
        name="train",
        uid=GangUID(uid),
        epoch=1,
        outcome=ReleaseOutcome.COMPLETED,
    )
