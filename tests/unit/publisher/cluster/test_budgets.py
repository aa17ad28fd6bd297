"""What disruption budgets let go is counted for all pods together."""

from __future__ import annotations

from typing import Any, cast

import msgspec

from publisher.cluster.budgets import Budgets, DisruptionBudget, weigh
from runtime.kube.api import KubernetesApi
from tests.builders import NAMESPACE
from tests.builders.pods import waiting_pod

PODS = tuple(waiting_pod(name, gang="train") for name in "ab")
LABELS = PODS[0].metadata.labels


def budget(allowed: int, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "stays", "namespace": NAMESPACE},
        "spec": spec,
        "status": {"disruptionsAllowed": allowed, "expectedPods": 2},
    }


def weighed(*budgets: dict[str, Any]) -> str:
    return weigh([msgspec.convert(each, DisruptionBudget) for each in budgets], PODS)


def test_all_go_together_or_none() -> None:
    selects = {"selector": {"matchLabels": LABELS}}
    assert weighed(budget(2, **selects)) == ""
    assert weighed(budget(1, **selects)) == (
        f"PodDisruptionBudget {NAMESPACE}/stays lets 1 pod go, and 2 must"
    )
    assert weighed(budget(2, **selects), budget(0, selector={}))


def test_a_pod_of_two_budgets_cannot_be_evicted() -> None:
    """The API server answers 500 (pkg/registry/core/pod/storage/eviction.go)."""
    other = budget(2, selector={})
    other["metadata"] = {"name": "too", "namespace": NAMESPACE}
    assert weighed(budget(2, selector={}), other) == (
        f"PodDisruptionBudgets {NAMESPACE}/stays and {NAMESPACE}/too select one pod, "
        "which cannot be evicted then"
    )


def test_what_was_counted_before_a_change_lets_nobody_go() -> None:
    changed = budget(2, selector={})
    changed["metadata"]["generation"] = 2
    changed["status"]["observedGeneration"] = 1
    assert "was changed" in weighed(changed)
    changed["status"]["observedGeneration"] = 2
    assert weighed(changed) == ""


def test_a_budget_of_others_or_of_none_is_not_in_the_way() -> None:
    other = {"selector": {"matchLabels": {"app": "other"}}}
    assert weighed(budget(0, **other), budget(0)) == ""


class Pages:
    """Serves budgets in pages of one."""

    def __init__(self, *budgets: dict[str, Any]) -> None:
        self.asked: list[str] = []
        self._budgets = budgets

    async def list_page(self, _: object, token: str, *, namespace: str) -> Any:
        """Give the next budget."""
        self.asked.append(namespace)
        number = int(token or 0)
        more = number + 1 < len(self._budgets)
        items = [self._budgets[number]] if self._budgets else []
        return type(
            "Page", (), {"items": items, "token": str(number + 1) if more else ""}
        )


async def test_all_budgets_of_their_namespaces_are_read() -> None:
    pages = Pages(budget(2), budget(1, selector={}))
    budgets = Budgets(cast("KubernetesApi", pages))
    assert "lets 1 pod go" in await budgets.find_refusal(PODS)
    assert pages.asked == [NAMESPACE, NAMESPACE]
    assert await Budgets(cast("KubernetesApi", Pages())).find_refusal(PODS) == ""
