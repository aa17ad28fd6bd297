"""Errors carry what happened as fields, and one catches all of the bus."""

from __future__ import annotations

import pytest

from runtime import errors


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (errors.ConfigError("X_Y", "is missing"), "X_Y: is missing"),
        (
            errors.BusUnavailableError("publish", "timeout"),
            "publish: NATS is not available: timeout",
        ),
        (errors.PublishRefusedError("a.b", "stale", "no"), "a.b: refused: no"),
        (
            errors.StreamDiffersError("INV", ("max_age", "storage"), "no"),
            (
                "stream INV exists with other settings (max_age, storage), "
                "which the server does not change: no"
            ),
        ),
        (errors.BlobCorruptedError("abc", "too short"), "blob abc: too short"),
    ],
)
def test_the_text_says_what_and_why(error: errors.ServiceError, text: str) -> None:
    """Subject or name first, as logs are searched by it."""
    assert str(error) == text


def test_whoever_uses_the_bus_catches_its_errors_by_one_name() -> None:
    """A wrong variable and a restart are none of the bus."""
    of_bus = {
        kind.__name__
        for kind in vars(errors).values()
        if isinstance(kind, type) and issubclass(kind, errors.BusError)
    }
    assert {"BusUnavailableError", "MessageError", "BlobMissingError"} <= of_bus
    assert not of_bus & {"ConfigError", "RestartError", "EarlyReturnError"}


def test_the_tree_of_the_docstring_is_the_tree() -> None:
    """Every error is drawn, and nothing else."""
    drawn = {
        word
        for line in (errors.__doc__ or "").splitlines()
        for word in line.replace("`", " ").split()
        if word.endswith("Error")
    }
    defined = {
        name
        for name, kind in vars(errors).items()
        if isinstance(kind, type) and issubclass(kind, errors.ServiceError)
    }
    assert drawn == defined
