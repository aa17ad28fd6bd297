"""Plans in process: objects as dicts in, a typed Plan out; no server needed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

from msgspec import structs

from contracts.features import DEFAULT_VERSION
from moorings.errors import BadInputError, UsageError
from moorings.files import read_file
from moorings.manifests import parse_documents, read_source
from moorings.plan.limits import read_features
from moorings.plan.plan import NOTHING_UNDERSTOOD, Plan
from moorings.plan.reading import Reader
from solver.cel.evaluator import SelectorEvaluator

Object = Mapping[str, Any]
"""An object of the Kubernetes API, as `yaml.safe_load` gives it."""
ORDERS = ("optimal", "upstream")
"""What `plan` may put first."""


def load(*paths: str | Path) -> list[Any]:
    """Read the objects of YAML and JSON files, in order; a List is one of them.

    Raises:
        BadInputError: a file cannot be read, or is neither YAML nor JSON.
    """
    objects: list[Any] = []
    for path in map(Path, paths):
        text = read_source(str(path), read_file(path))
        objects += [raw for _, raw in parse_documents(str(path), text)]
    return objects


def plan(
    objects: Iterable[Object],
    *,
    node: str | None = None,
    order: Literal["optimal", "upstream"] = "optimal",
    kubernetes_version: str = DEFAULT_VERSION,
    feature_gates: Mapping[str, bool] | None = None,
) -> Plan:
    """Decide which devices pods, claims and gangs would get, as `moorings plan` does.

    Args:
        objects: ResourceSlices, DeviceClasses, claims, templates, Nodes, Pods, Gangs,
            workloads with pod templates, and Lists of them. They are only read.
        node: allocate all claims that no pod uses together on this node.
        order: `optimal`, the best for all together, or `upstream`, pod by pod as
            kube-scheduler would.
        kubernetes_version: release, such as `1.35`, for the defaults of feature gates.
        feature_gates: gates of the cluster that are not at their defaults.

    Raises:
        BadInputError: an object that decides something cannot be read, or nothing asks
            for devices and something was passed by.
        UsageError: an unknown version or gate.
    """
    with PlanSession(
        kubernetes_version=kubernetes_version, feature_gates=feature_gates
    ) as session:
        return session.plan(objects, node=node, order=order)


class PlanSession:
    """Makes many plans, with one sandbox for selectors and one table of their verdicts.

    To be used by one thread at a time, in a `with` block that ends its processes.
    """

    def __init__(
        self,
        *,
        kubernetes_version: str = DEFAULT_VERSION,
        feature_gates: Mapping[str, bool] | None = None,
    ) -> None:
        """Say of which release and gates the cluster is, as `plan` does.

        Raises:
            UsageError: an unknown version or gate.
        """
        self._features = read_features(kubernetes_version, feature_gates or {})
        self._evaluator = SelectorEvaluator()

    def __enter__(self) -> Self:
        from moorings.plan.decide import Planner  # noqa: PLC0415  # OR-Tools is slow to import

        self._planner = Planner(self._evaluator.__enter__())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._evaluator.__exit__(kind, error, trace)

    def plan(
        self,
        objects: Iterable[Object],
        *,
        node: str | None = None,
        order: Literal["optimal", "upstream"] = "optimal",
    ) -> Plan:
        """Make one plan; see `plan`.

        Raises:
            BadInputError: see `plan`.
            UsageError: there is no such order.
        """
        if order not in ORDERS:
            raise UsageError(f"order {order!r} is unknown; use {' or '.join(ORDERS)}")
        if isinstance(objects, str | Mapping):
            raise BadInputError("objects", "must be a list; `load` reads files")
        from moorings.plan.decide import PlanOptions  # noqa: PLC0415

        told: list[str] = []
        reader = Reader(told.append)
        entries = reader.read_list(list(objects))
        if reader.refused:
            faults = [text for text in told if text.startswith("error: ")]
            raise BadInputError("objects", "; ".join(faults).replace("error: ", ""))
        options = PlanOptions(node=node, order=order, features=self._features)
        answer = self._planner.plan(entries, options)
        if answer.error is not None:
            raise BadInputError("objects", answer.error)
        if reader.skipped and not answer.gangs:
            nothing = NOTHING_UNDERSTOOD.removeprefix("error: ")
            raise BadInputError("objects", "; ".join([nothing, *told]))
        notes = (text.removeprefix("note: ") for text in told)
        return structs.replace(answer, notes=(*notes, *answer.notes))
