"""The rights of a role of the bus, narrowed to one node or to some namespaces.

For users whom Kubernetes vouches for. The same table and the same accounts as those of
the static users; names are encoded as in every subject, so none becomes a wildcard.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from contracts.topics import COMMANDS, DECISIONS, SUBMISSIONS, TOPICS, Topic
from runtime.bus.permissions import Permissions, last_of, permissions_of, republished
from runtime.users import (
    NODEAGENT,
    PLATFORM,
    NamespaceRights,
    api_prefix,
    inbox_prefix,
)


def permissions_of_agent(user: str, cluster: str, node: str) -> Permissions:
    """Return what the agent of one node may do on the subjects of its account."""
    whole = permissions_of(NODEAGENT)
    own: dict[str, str] = {}
    for topic in TOPICS:
        if NODEAGENT in topic.senders:
            subject = topic.subject(cluster, node)
            own[topic.any_subject] = subject
            every = last_of(NODEAGENT, topic.stream, topic.any_subject)
            own[every] = last_of(NODEAGENT, topic.stream, subject)
    return Permissions(
        publish=tuple(sorted(own[subject] for subject in own.keys() & whole.publish)),
        subscribe=(f"{inbox_prefix(user)}.>",),
    )


def permissions_of_platform(
    user: str, cluster: str, rights: Iterable[NamespaceRights]
) -> Permissions:
    """Return what a platform may do with gangs of these namespaces.

    What it reads there is the last message of a subject, and decisions as they come;
    who may read in all namespaces reads whole streams, and recorded solves.
    """
    publish: set[str] = set()
    subscribe = {f"{inbox_prefix(user)}.>"}
    for right in rights:
        place = () if right.namespace is None else (right.namespace,)
        for topic in TOPICS:
            if "namespace" not in topic.names:
                continue
            subjects = topic.subjects_below(cluster, *place)
            if is_sent := _may_send(right, topic):
                publish.add(subjects)
            if PLATFORM in topic.receivers and (is_sent or right.read):
                publish.add(last_of(user, topic.stream, subjects))
            if right.read and topic is DECISIONS:
                subscribe.add(republished(topic, subjects))
        if right.read and right.namespace is None:
            whole = permissions_of(user)
            publish.update(s for s in whole.publish if s.startswith(api_prefix(user)))
            subscribe.update(s for s in whole.subscribe if not s.startswith("_INBOX."))
    return Permissions(
        publish=tuple(sorted(publish)), subscribe=tuple(sorted(subscribe))
    )


def _may_send(right: NamespaceRights, topic: Topic[Any]) -> bool:
    if topic is SUBMISSIONS:
        return right.submit
    return right.command and topic is COMMANDS
