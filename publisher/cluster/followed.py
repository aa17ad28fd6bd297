"""Which kinds a publisher follows, and how: some may be absent, or not ours to read."""

from __future__ import annotations

from functools import partial

from contracts.pods.membership import list_owner_kinds
from publisher.config import PublisherConfig
from publisher.kube.informer import Follow, follow
from runtime.kube.api import KubernetesApi
from runtime.kube.kinds import (
    GANG,
    GANG_OWNERS,
    KUEUE_KINDS,
    POD_GROUP,
    STORAGE_KINDS,
    ServedKinds,
)

UNSAID = frozenset(
    kind.name for kind in (*STORAGE_KINDS, *GANG_OWNERS, POD_GROUP, *KUEUE_KINDS)
)
"""Kinds that only the publisher decides by: the bus does not carry them."""


def follow_kinds(
    api: KubernetesApi, kinds: ServedKinds, config: PublisherConfig
) -> dict[str, Follow]:
    """Return how each kind is followed."""
    follows: dict[str, Follow] = {
        kind.name: partial(follow, api, kind)
        for kind in (*kinds.followed, *STORAGE_KINDS)
    }
    follows[GANG.name] = partial(follow, api, GANG, may_be_absent=True)
    owners = list_owner_kinds(config.workloads)
    for kind in (*GANG_OWNERS, kinds.pod_group):
        if kind is not None and kind.name in owners:
            follows[kind.name] = partial(
                follow, api, kind, may_be_absent=True, may_be_denied=True
            )
    for kind in KUEUE_KINDS if config.kueue_checks else ():
        follows[kind.name] = partial(
            follow, api, kind, may_be_absent=True, may_be_denied=True
        )
    return follows
