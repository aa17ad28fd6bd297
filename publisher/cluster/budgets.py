"""Whether disruption budgets let all pods go that must go together.

Evictions are refused one by one, and the first of two may be let go where both are not:
so what the budgets allow is counted before anybody is evicted.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from contracts.counts import counted
from contracts.labels import LabelSelector, does_match
from contracts.meta import ObjectMeta
from contracts.structs import KubernetesExcerpt
from contracts.workload import Pod
from runtime.kube.api import KubernetesApi
from runtime.kube.kinds import POD_DISRUPTION_BUDGET


class _Spec(KubernetesExcerpt, frozen=True, kw_only=True):
    selector: LabelSelector | None = None
    """None: of no pod."""


class _Status(KubernetesExcerpt, frozen=True, kw_only=True):
    observed_generation: int = 0
    disruptions_allowed: int = 0


class DisruptionBudget(KubernetesExcerpt, frozen=True, kw_only=True):
    """A PodDisruptionBudget (policy/v1): so many of its pods may go now."""

    metadata: ObjectMeta = ObjectMeta()
    spec: _Spec = _Spec()
    status: _Status = _Status()


class Budgets:
    """The disruption budgets of the cluster, read when they are needed."""

    def __init__(self, api: KubernetesApi) -> None:
        self._api = api

    async def find_refusal(self, pods: Iterable[Pod]) -> str:
        """Say which budget does not let all of these pods go; empty: none is against.

        Raises:
            ApiError: the budgets cannot be read.
        """
        by_namespace: dict[str, list[Pod]] = {}
        for pod in pods:
            by_namespace.setdefault(pod.metadata.namespace, []).append(pod)
        for namespace, going in sorted(by_namespace.items()):
            refusal = weigh(await self._list(namespace), going)
            if refusal:
                return refusal
        return ""

    async def _list(self, namespace: str) -> list[DisruptionBudget]:
        budgets, token = list[DisruptionBudget](), ""
        while True:
            page = await self._api.list_page(
                POD_DISRUPTION_BUDGET, token, namespace=namespace
            )
            budgets += (
                msgspec.convert(raw, DisruptionBudget) for raw in page.items or ()
            )
            token = page.token
            if not token:
                return budgets


def weigh(budgets: Iterable[DisruptionBudget], pods: Iterable[Pod]) -> str:
    """Say which budget does not let all of these pods go; empty: none is against."""
    labels = [pod.metadata.labels for pod in pods]
    first: dict[int, str] = {}
    for budget in budgets:
        selector, allowed = budget.spec.selector, budget.status.disruptions_allowed
        if selector is None:
            continue
        name = f"{budget.metadata.namespace}/{budget.metadata.name}"
        matched = [n for n, each in enumerate(labels) if does_match(selector, each)]
        wanted = len(matched)
        for number in matched:
            # The API server evicts no such pod: it answers 500, and always will.
            if first.setdefault(number, name) != name:
                both = f"{first[number]} and {name}"
                return (
                    f"PodDisruptionBudgets {both} select one pod, which cannot be "
                    "evicted then"
                )
        if wanted > allowed:
            return (
                f"PodDisruptionBudget {name} lets {counted(allowed, 'pod')} go, and "
                f"{wanted} must"
            )
        if wanted and budget.status.observed_generation < budget.metadata.generation:
            return f"PodDisruptionBudget {name} was changed, and is not counted yet"
    return ""
