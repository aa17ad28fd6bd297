"""The command names Gangs that cannot be submitted, and goes on with the others."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from moorings.cli.main import app
from moorings.errors import BadInputError, UsageError

QUICKSTART = Path("docs/quickstart/gang.yaml").read_text()
NAME = "{name: my-gang}"


@pytest.mark.parametrize(
    ("metadata", "said"),
    [
        ("{}", ": Gang: gang.metadata.name: must not be empty"),
        ("{generateName: my-gang-}", "my-gang-00000: UnknownDeviceClass"),
    ],
)
def test_a_gang_has_a_name_or_gets_one(
    tmp_path: Path, metadata: str, said: str
) -> None:
    """As the API server makes one of generateName."""
    assert NAME in QUICKSTART
    path = tmp_path / "gang.yaml"
    path.write_text(QUICKSTART.replace(NAME, metadata))
    done = CliRunner().invoke(app, ["plan", "-f", str(path)])
    assert done.exit_code == 3
    assert said in done.output


@pytest.mark.parametrize("lines", ["", "\n \n"])
def test_lines_of_which_there_is_none_are_no_yes(lines: str) -> None:
    """As `-f -` says: a command before it may have failed."""
    with pytest.raises(BadInputError, match="standard input: is empty"):
        CliRunner().invoke(
            app, ["plan", "--jsonl"], input=lines, catch_exceptions=False
        )


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["0"], "--time-limit must be more than 0 seconds: 0"),
        (["-1"], "--time-limit must be more than 0 seconds: -1"),
        (["nan"], "--time-limit must be more than 0 seconds: nan"),
        (["inf"], "--time-limit must be more than 0 seconds: inf"),
        (["1", "--order", "upstream"], "--time-limit works only with --order optimal"),
    ],
)
def test_a_time_limit_is_some_seconds_of_a_search(
    options: list[str], said: str
) -> None:
    with pytest.raises(UsageError, match=said):
        CliRunner().invoke(
            app,
            ["plan", "-f", "gang.yaml", "--time-limit", *options],
            catch_exceptions=False,
        )


FOO = """
apiVersion: v1
kind: Node
metadata: {name: node-1}
status: {allocatable: {cpu: "8", pods: "110", example.com/foo: "5"}}
---
apiVersion: v1
kind: Pod
metadata: {name: p}
spec: {containers: [{name: c, resources: {limits: {example.com/foo: N}}}]}
"""


@pytest.mark.parametrize(
    ("amount", "code", "said"),
    [("5", 0, "allocated   node-1"), ("6", 1, "NodeResourcesInsufficient")],
)
def test_a_pod_without_claims_has_a_row(
    tmp_path: Path, amount: str, code: int, said: str
) -> None:
    """What a device plugin offers is counted, and the pod's node is shown."""
    path = tmp_path / "pod.yaml"
    path.write_text(FOO.replace("N}", f"{amount}}}"))
    done = CliRunner().invoke(app, ["plan", "-f", str(path)])
    assert (done.exit_code, said in done.output) == (code, True)
