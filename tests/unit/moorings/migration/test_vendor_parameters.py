"""A vendor's parameters are converted by a command, which may fail in every way."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from contracts.alpha.convert import convert
from moorings.errors import BadInputError
from moorings.migration.vendor_parameters import convert_parameters

PARAMETERS = {
    "apiVersion": "cats.example.com/v1",
    "kind": "CatParameters",
    "metadata": {"name": "black", "namespace": "ns"},
    "spec": {"color": "black"},
}
OTHER = {**PARAMETERS, "metadata": {"name": "white", "namespace": "ns"}}
CLAIM = {
    "apiVersion": "resource.k8s.io/v1alpha2",
    "kind": "ResourceClaim",
    "metadata": {"name": "c", "namespace": "ns"},
    "spec": {
        "resourceClassName": "cats",
        "parametersRef": {
            "apiGroup": "cats.example.com",
            "kind": "CatParameters",
            "name": "black",
        },
    },
}
CONVERTER = """
import json, sys
color = json.load(sys.stdin)["spec"]["color"]
selector = f'attributes.string["color"] == "{color}"'
requests = [{"namedResources": {"selector": selector}}]
driver = {"driverName": "cats.example.com", "requests": requests}
print(json.dumps({"kind": "ResourceClaimParameters", "driverRequests": [driver]}))
"""


def _convert(program: str) -> list[tuple[str, Any]]:
    documents = [("f", PARAMETERS), ("g", OTHER), ("h", CLAIM)]
    return list(convert_parameters(documents, [sys.executable, "-c", program]))


def test_only_what_is_referred_to_is_converted() -> None:
    """What the command makes is found by the claim that refers to its input."""
    documents = _convert(CONVERTER)
    assert documents[1] == ("g", OTHER)
    claim = next(c.value for c in convert(documents) if c.source == "h")
    (request,) = claim["spec"]["devices"]["requests"]
    expression = request["exactly"]["selectors"][0]["cel"]["expression"]
    assert expression == 'device.attributes["cats.example.com"].color == "black"'


def test_what_the_vendor_s_controller_made_is_kept() -> None:
    """It knows its own parameters better than the command, which is not run."""
    generated = {
        "apiVersion": "resource.k8s.io/v1alpha2",
        "kind": "ResourceClaimParameters",
        "metadata": {"name": "made", "namespace": "ns"},
        "generatedFrom": CLAIM["spec"]["parametersRef"],  # type: ignore[index]
    }
    documents = [("f", PARAMETERS), ("g", generated), ("h", CLAIM)]
    assert list(convert_parameters(documents, ["false"])) == documents


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("import sys; sys.exit('no such cat')", "exited with 1: no such cat"),
        ("print('a: b: c')", "wrote no YAML or JSON"),
        ("print('kind: Cat')", "wrote no ResourceClaimParameters or"),
    ],
)
def test_a_command_that_fails_is_named(program: str, words: str) -> None:
    """With the object that it failed for."""
    with pytest.raises(BadInputError, match=words) as error:
        _convert(program)
    assert "CatParameters ns/black" in str(error.value)


def test_a_command_that_is_not_there_is_named() -> None:
    with pytest.raises(BadInputError, match="no-such-program: No such file"):
        list(convert_parameters([("f", PARAMETERS), ("h", CLAIM)], ["no-such-program"]))
