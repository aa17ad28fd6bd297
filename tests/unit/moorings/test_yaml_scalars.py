"""Plain scalars, as sigs.k8s.io/yaml v1.4.0 reads them."""

from __future__ import annotations

import math
from typing import Any

import pytest

from moorings.cli.output import write_yaml
from moorings.errors import BadInputError
from moorings.manifests import parse_documents
from moorings.yaml_scalars import read_number

READ: dict[str, Any] = {
    "1:30": "1:30",
    "190:20:30.15": "190:20:30.15",
    "2001-01-01": "2001-01-01",
    "0o17": 15,
    "0O17": 15,
    "017": 15,
    "-017": -15,
    "08": 8,
    "09.5": 9.5,
    "0o8": "0o8",
    "0x1F": 31,
    "0x": "0x",
    "-0b1": -1,
    "1_000": 1000,
    "_1": "_1",
    "1e3": 1000,
    "1e-3": 0.001,
    "1e": "1e",
    "1e400": "1e400",
    "-.5": -0.5,
    "._5": "._5",
    ".": ".",
    "1.0": 1,
    "18446744073709551615": (1 << 64) - 1,
    "9" * 5_000: "9" * 5_000,
    "y": True,
    "on": True,
    "oN": "oN",
    "OFF": False,
    "N": False,
    "nan": "nan",
    "~": None,
    "Null": None,
    "=": "=",
    "!!int '12'": 12,
    "!!str 12": "12",
}


def read(text: str) -> Any:
    (value,) = (value for _, value in parse_documents("a", text))
    return value


@pytest.mark.parametrize("written", READ)
def test_a_scalar_is_read_as_kubernetes_reads_it(written: str) -> None:
    value = read(f"a: {written}")["a"]
    assert (value, type(value)) == (READ[written], type(READ[written]))


def test_keys_are_texts() -> None:
    written = "{3: a, y: b, 1.5: c, 0x10: d, 'on': e}"
    assert list(read(written)) == ["3", "true", "1.5", "16", "on"]
    with pytest.raises(BadInputError, match="a key is null"):
        read("{~: a}")


def test_an_endless_number_is_one() -> None:
    """Whoever reads it refuses it."""
    assert read_number("-.inf") == -math.inf
    assert math.isnan(float(read_number(".nan")))


def test_what_says_that_it_is_a_number_must_be_one() -> None:
    with pytest.raises(BadInputError, match="line 1, column 4: '1:30' is no number"):
        read("a: !!int '1:30'")


@pytest.mark.parametrize("written", READ)
def test_what_is_written_is_read_again(
    written: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A text that looks like something else is in quotes."""
    values = {"text": written, "value": READ[written]}
    write_yaml(values)
    assert read(capsys.readouterr().out) == values
