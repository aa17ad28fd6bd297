"""The sources file: what is taken of it, and how it is refused."""

from __future__ import annotations

import pytest

from contracts.ids import NodeName
from nodeagent.errors import SettingsError
from nodeagent.sources.source_file import MAX_SOURCES, make_schema, read_sources

HEAD = "apiVersion: moorings.dev/v1alpha1\nkind: Sources\nsources:\n"
NODE = NodeName("n-0")
SIMULATED = "{kind: simulated, name: lab, fleet: fleet.yaml}"
COUNTED = (
    "{kind: counted, name: x, driver: a.io, resources: [{name: d, count: 1}],"
    " programs: %s}"
)
NVML = "{kind: nvml, name: gpus, driver: gpu.nvidia.com, healthOnly: true}"


def read(*sources: str) -> list[str]:
    """Read a file of these sources; gives their names."""
    text = HEAD + "".join(f"- {source}\n" for source in sources)
    return [spec.name for spec in read_sources(text, "s.yaml", NODE)]


def test_sources_come_in_the_order_of_the_file() -> None:
    """As they are written."""
    other = SIMULATED.replace("lab", "other")
    assert read(SIMULATED, other) == ["lab", "other"]


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("{kind: magic, name: x}", "sources[0].kind: Invalid value 'magic'"),
        ("{kind: simulated, name: x}", "missing required field `fleet`"),
        (SIMULATED.replace("fleet:", "flet: a, fleet:"), "unknown field `flet`"),
        (SIMULATED.replace("lab", "Lab_1"), "sources[0].name: Invalid value"),
        (SIMULATED.replace("lab", "a" * 64), "sources[0].name: "),
        (
            SIMULATED.replace("}", ", readSeconds: 0}"),
            "sources[0].readSeconds: Expected `float` > 0",
        ),
        (
            COUNTED % "{setUp: [up.sh]}",
            "sources[0].programs.setUp[0]: 'up.sh': must be",
        ),
        (COUNTED % "{tearDown: [/x/../y]}", "sources[0].programs.tearDown[0]: "),
        (COUNTED % "{limitSeconds: 31}", "sources[0].programs.limitSeconds: Expected"),
        (
            NVML.replace("}", ", programs: {setUp: [/up]}}"),
            "sources[0].healthOnly: attributes, edits and programs are for",
        ),
    ],
)
def test_a_broken_source_is_refused(source: str, said: str) -> None:
    """With file, field and rule."""
    with pytest.raises(SettingsError) as caught:
        read(source)
    assert str(caught.value).startswith("s.yaml: ")
    assert said in str(caught.value)


def test_names_are_there_once() -> None:
    """Each is what logs call a source."""
    with pytest.raises(SettingsError, match=r"sources\[1\].name: sources\[0\] has"):
        read(SIMULATED, SIMULATED)


@pytest.mark.parametrize(
    ("sources", "said"),
    [
        (
            [NVML.replace("}", ", attributes: {rack: a}}")],
            "sources[0].healthOnly: attributes, edits and programs are for",
        ),
        (
            [NVML, NVML.replace("gpus", "b").replace("true", "false, pool: p")],
            "sources[1].healthOnly: sources[0] says otherwise of the driver",
        ),
    ],
)
def test_a_driver_is_ours_or_another_s(sources: list[str], said: str) -> None:
    """Never both on one node."""
    assert read(NVML) == ["gpus"]
    with pytest.raises(SettingsError) as caught:
        read(*sources)
    assert said in str(caught.value)


def test_a_file_has_so_many_sources_and_no_more() -> None:
    """What has more is a mistake."""
    with pytest.raises(SettingsError, match=f"<= {MAX_SOURCES}"):
        read(*[SIMULATED.replace("lab", f"l-{i}") for i in range(MAX_SOURCES + 1)])


@pytest.mark.parametrize(
    ("head", "field"),
    [(HEAD.replace("v1alpha1", "v9"), "apiVersion"), (HEAD.replace("S", "F"), "kind")],
)
def test_another_kind_of_file_is_refused(head: str, field: str) -> None:
    """A fleet file is no sources file."""
    with pytest.raises(SettingsError, match=f"s.yaml: {field}: must be"):
        read_sources(f"{head} []", "s.yaml", NODE)


def test_the_schema_knows_every_kind() -> None:
    """It is made of what reads the file."""
    parts = make_schema()["$defs"]
    assert parts["SimulatedSpec"]["properties"]["kind"] == {"enum": ["simulated"]}
    assert parts["SimulatedSpec"]["additionalProperties"] is False
