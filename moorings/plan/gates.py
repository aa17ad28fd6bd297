"""What a cluster can do, from the words of the command line."""

from __future__ import annotations

from collections.abc import Mapping

from contracts.features import FeatureError, Features, features_of, read_gates
from moorings.errors import UsageError


def gates_of(text: str) -> dict[str, bool]:
    """Read `Name=true,Other=false`.

    Raises:
        UsageError: a part is not of that form.
    """
    try:
        return read_gates(filter(str.strip, text.split(",")))
    except FeatureError as error:
        raise UsageError(f"--feature-gates: {error}") from error


def read_features(version: str, gates: Mapping[str, bool]) -> Features:
    """Describe a cluster by its version and the gates that were changed.

    Raises:
        UsageError: an unknown version or gate.
    """
    try:
        return features_of(version, gates)
    except FeatureError as error:
        raise UsageError(str(error)) from error
