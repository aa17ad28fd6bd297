"""A service ends once the API server serves something better, and not by accident."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest

from publisher.kube.discovery import watch_served
from runtime.errors import RestartError
from runtime.kube.api import KubernetesApi
from runtime.kube.errors import ClusterError, UnavailableError
from runtime.kube.kinds import VERSIONS, ServedKinds, choose_kinds


def served(*versions: str) -> ServedKinds:
    """Choose from these versions of resource.k8s.io."""
    chosen = choose_kinds({version: {"resourceclaims"} for version in versions})
    assert chosen is not None
    return chosen


OLD, NEW = served("v1beta1"), served("v1")


class Api:
    """Gives its answers one by one, then ends the watch."""

    def __init__(self, *answers: ServedKinds | Exception) -> None:
        self.answers = list(answers)
        self.stop = asyncio.Event()

    async def fetch_served_kinds(self, _versions: tuple[str, ...]) -> ServedKinds:
        """Give the next answer."""
        answer = self.answers.pop(0)
        if not self.answers:
            self.stop.set()
        if isinstance(answer, Exception):
            raise answer
        return answer


async def watch(*answers: ServedKinds | Exception) -> None:
    """Watch until the answers are used up."""
    api = Api(*answers)
    await watch_served(cast("KubernetesApi", api), VERSIONS, OLD, api.stop, every_s=0)


async def test_two_answers_in_a_row_that_say_the_same_are_believed() -> None:
    """And it is said what is served."""
    with pytest.raises(RestartError, match=r"ResourceClaim resource\.k8s\.io/v1 "):
        await watch(NEW, NEW)


async def test_servers_that_are_being_upgraded_answer_in_turns() -> None:
    """One answer alone changes nothing."""
    await watch(NEW, OLD, NEW, OLD, NEW)


async def test_no_answer_is_no_change() -> None:
    """Whoever follows the kinds waits for the API server."""
    await watch(UnavailableError("get", "no"), ClusterError("c", "no"), OLD)
