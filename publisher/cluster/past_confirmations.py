"""Which gangs were over before a publisher began, so that nothing is left to do.

Those of which no pod or Gang is left, and whose end is confirmed or needs no
confirmation. Confirmations are read first, then decisions: of a past gang nothing else
is read at all. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from contracts.ids import ClusterName, GangKey, GangUID, Namespace
from contracts.lifecycle import LifecycleMessage
from contracts.messages import (
    ClaimsReleased,
    DecisionMessage,
    GangRejected,
    GangReleased,
)
from publisher.gang_names import shorten_gang_name
from publisher.gangs.view import GroupKey
from runtime.past_gangs import PastGangs


class PastConfirmations:
    """Holds back confirmations until everything has been read."""

    def __init__(
        self, cluster: ClusterName, shown: Callable[[], Iterable[GroupKey]]
    ) -> None:
        """`shown` names the groups that have pods or a Gang object."""
        self._cluster = cluster
        self._shown = shown
        self._names: frozenset[tuple[str, str]] | None = None
        """Namespaces and names of gangs in the cluster when decisions began."""
        self._past = PastGangs()
        self._released: dict[str, int] = {}
        """Sequence of `ClaimsReleased` by gang (`str` of a GangKey)."""
        self._all_decided = False
        """True if all decisions were read."""

    @property
    def skips(self) -> Callable[[str], bool]:
        """True if a subject is of a gang that is over."""
        return self._past.skips

    def take(
        self, message: LifecycleMessage, sequence: int
    ) -> Iterator[tuple[LifecycleMessage, int]]:
        """Return what to apply now, of these messages and of those held back."""
        gang = message.key
        if isinstance(message, DecisionMessage):
            released = self._released.pop(str(gang), 0)
            if self._is_past(message, is_released=released > 0):
                self._past.add(gang)
                return
            self._past.discard(gang)
            yield message, sequence
            if released:
                yield self._make_confirmation(gang), released
        elif isinstance(message, ClaimsReleased) and not self._all_decided:
            self._released[str(gang)] = sequence
        elif not self._past.has(gang):
            yield message, sequence

    def end_decisions(
        self, is_known: Callable[[GangKey], bool]
    ) -> Iterator[tuple[LifecycleMessage, int]]:
        """Return what was held back of known gangs; all decisions are read.

        They gave their claims back while decisions were read. Of gangs without a
        decision everything but this was removed.
        """
        self._all_decided = True
        held, self._released = self._released, {}
        for text, sequence in held.items():
            namespace, _, uid = text.partition("/")
            gang = GangKey(Namespace(namespace), GangUID(uid))
            if is_known(gang):
                yield self._make_confirmation(gang), sequence

    def close(self) -> None:
        """Note that everything was read: from now on every message counts."""
        self._past.close()
        self._names = frozenset()

    def _is_past(self, message: DecisionMessage, *, is_released: bool) -> bool:
        if not self._past.is_open:
            return False
        if isinstance(message, GangReleased):
            return is_released and not self._is_shown(message)
        return isinstance(message, GangRejected) and not self._is_shown(message)

    def _is_shown(self, message: GangReleased | GangRejected) -> bool:
        """True if pods or a Gang object of a gang's name are there."""
        if self._names is None:
            self._names = frozenset(
                (group.namespace, shorten_gang_name(group.name))
                for group in self._shown()
            )
        return (message.namespace, shorten_gang_name(message.name)) in self._names

    def _make_confirmation(self, gang: GangKey) -> ClaimsReleased:
        return ClaimsReleased(
            cluster=self._cluster, namespace=gang.namespace, uid=gang.uid
        )
