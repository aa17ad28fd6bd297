"""A shrunken case has what the difference needs, and nothing else."""

from __future__ import annotations

from tests.oracles.differential.case import DEFAULTS, generate
from tests.oracles.differential.draw import Json
from tests.oracles.differential.shrink import shrink


def has_shareable(case: Json) -> bool:
    return any(
        device.get("allowMultipleAllocations")
        for item in case["slices"]
        for device in item["spec"].get("devices", ())
    )


def test_what_is_not_needed_goes() -> None:
    """Only what the difference needs is left."""
    case = next(case for case in map(generate, range(1000)) if has_shareable(case))
    smaller = shrink(case, has_shareable)
    assert smaller["claims"] == []
    assert smaller["classes"] == []
    assert smaller["features"] == DEFAULTS
    (left,) = smaller["slices"]
    (device,) = left["spec"]["devices"]
    assert set(device) == {"name", "allowMultipleAllocations"}
    assert has_shareable(case)


def test_a_slice_that_goes_is_not_missed() -> None:
    """The pool's count of slices goes with it."""

    def whole(case: Json) -> bool:
        counts = [item["spec"]["pool"]["resourceSliceCount"] for item in case["slices"]]
        return bool(counts) and all(count == len(counts) for count in counts)

    case = next(
        case
        for case in map(generate, range(1000))
        if len(case["slices"]) > 1 and whole(case)
    )
    assert len(shrink(case, whole)["slices"]) == 1


def test_a_case_that_needs_everything_stays() -> None:
    """Nothing is taken away for nothing."""
    case = generate(1)
    assert shrink(case, lambda other: other == case) == case
