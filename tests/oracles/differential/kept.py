"""The cases that are kept: what once differed, or shows a rule at its smallest.

A file a feature under `tests/cases/`; each case has its name, why it is there, and
what upstream answers: `expect` has the outcome, of errors a part of the text, of
successes the devices of each claim as `request driver pool device`.
"""

from __future__ import annotations

from pathlib import Path

import yaml
from msgspec import Struct, convert

from tests.oracles.differential.case import DEFAULTS, TIMEOUT_MS
from tests.oracles.differential.draw import Json

FOLDER = Path(__file__).parents[2] / "cases"


class Expected(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What upstream answers."""

    outcome: str
    error: str = ""
    devices: list[list[str]] = []


class Kept(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One case of a file."""

    name: str
    why: str
    case: Json
    """`features` names only the switches that are not as Kubernetes 1.37 has them."""
    expect: Expected


def kept() -> list[Kept]:
    """Read all kept cases, ready for the oracle."""
    found = []
    for path in sorted(FOLDER.glob("*.yaml")):
        for raw in yaml.safe_load(path.read_text()):
            item = convert(raw, Kept)
            features = {**DEFAULTS, **item.case.get("features", {})}
            name = f"{path.stem}/{item.name}"
            case = {"timeoutMs": TIMEOUT_MS, **item.case, "features": features}
            found.append(
                Kept(
                    name=name,
                    why=item.why,
                    case={"id": name, **case},
                    expect=item.expect,
                )
            )
    return found


def unexpected(answer: Json, expect: Expected) -> str:
    """Say what of an answer was not expected; empty: nothing."""
    if answer["outcome"] != expect.outcome:
        return f"{answer['outcome']} {answer.get('error') or ''}, not {expect.outcome}"
    if expect.error not in (answer.get("error") or ""):
        return f"{answer['error']!r} does not say {expect.error!r}"
    if expect.outcome == "success" and (found := _devices(answer)) != expect.devices:
        return f"{found}, not {expect.devices}"
    return ""


def _devices(answer: Json) -> list[list[str]]:
    return [
        [
            " ".join(item[key] for key in ("request", "driver", "pool", "device"))
            for item in (allocation.get("devices") or {}).get("results") or ()
        ]
        for allocation in answer.get("allocations") or ()
    ]
