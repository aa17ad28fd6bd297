"""`plan --jsonl`: a case a line in, its Plan a line out, in order, flushed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal

import msgspec
from msgspec import Struct, structs

from contracts.codec import Codec, encode
from contracts.errors import ContractsError
from contracts.features import DEFAULT_VERSION
from moorings.duplicate_keys import check_json
from moorings.errors import BadInputError, MooringsError, UsageError
from moorings.nesting import check_levels
from moorings.plan.decide import Planner, PlanOptions
from moorings.plan.limits import read_features
from moorings.plan.plan import NOTHING_UNDERSTOOD, Plan
from moorings.plan.reading import Reader


class Case(Struct, frozen=True, kw_only=True, rename="camel"):
    """One line of input."""

    id: Any = None
    objects: list[Any]
    node: str | None = None
    order: Literal["optimal", "upstream"] = "optimal"
    feature_gates: dict[str, bool] = {}
    kubernetes_version: str = DEFAULT_VERSION
    as_stored: bool = False
    """The objects are as upstream's allocator sees them: nothing is filled in or
    refused that the API server would fill in or refuse."""
    timeout_seconds: float | None = None
    """For the `upstream` order; the other has limits in work units, so that answers do
    not depend on the machine."""


_CASE: Codec[Case] = Codec(Case, "line")


def plan_lines(
    lines: Iterable[bytes],
    planner: Planner,
    tell: Callable[[Plan], None] = lambda _: None,
) -> Iterator[bytes]:
    """Answer each line; a bad one gets status Error and the next goes on.

    `tell` is told each answer.
    """
    for number, line in enumerate(lines, start=1):
        if line.strip():
            answer = _plan_line(line, planner)
            if answer.error is not None:
                text = f"line {number}: {answer.error}"
                answer = structs.replace(answer, error=text)
            tell(answer)
            yield encode(answer) + b"\n"


def _plan_line(line: bytes, planner: Planner) -> Plan:
    try:
        case = _CASE.decode(line)
        check_json("line", line)
        check_levels("id", case.id)
        for index, raw in enumerate(case.objects):
            check_levels(f"objects[{index}]", raw)
        features = read_features(case.kubernetes_version, case.feature_gates)
        messages: list[str] = []
        reader = Reader(messages.append, as_stored=case.as_stored)
        objects = reader.read_list(case.objects)
    except (ContractsError, BadInputError, UsageError, ValueError) as error:
        text = str(error).removeprefix("line: ")
        return Plan(id=_find_id(line), status="Error", error=text)
    if reader.refused:
        errors = "; ".join(text for text in messages if text.startswith("error: "))
        return Plan(id=case.id, status="Error", error=errors.removeprefix("error: "))
    options = PlanOptions(
        node=case.node,
        order=case.order,
        features=features,
        as_stored=case.as_stored,
        timeout_seconds=case.timeout_seconds,
    )
    try:
        plan = planner.plan(objects, options)
    except MooringsError as error:
        return Plan(id=case.id, status="Error", error=str(error))
    except Exception as error:  # noqa: BLE001  # one case must not end the stream
        text = f"{type(error).__name__}: {error}"
        return Plan(id=case.id, status="Error", error=text)
    if reader.skipped and not plan.gangs and plan.error is None:
        text = NOTHING_UNDERSTOOD.removeprefix("error: ")
        return Plan(id=case.id, status="Error", error=text)
    return structs.replace(plan, id=case.id)


def _find_id(line: bytes) -> Any:
    """Find the id even of a line that is wrong otherwise."""
    try:
        value = msgspec.json.decode(line)
        found = value.get("id") if isinstance(value, dict) else None
        check_levels("id", found)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, BadInputError):
        return None
    return found
