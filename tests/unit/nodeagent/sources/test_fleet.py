"""Fleet files: what is refused, with which words, and what the shipped ones hold."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

import moorings
from nodeagent.errors import SettingsError
from nodeagent.sources.expand import Nodes, expand
from nodeagent.sources.faults import plan_faults
from nodeagent.sources.fleet import read_faults, read_fleet

DOCUMENT = Path(__file__).parents[4] / "docs" / "fleet.md"
FLEETS = Path(moorings.__file__).parent / "fleets"

GOOD = """
apiVersion: moorings.dev/v1alpha1
kind: Fleet
name: test
topology:
- {label: rack, value: "r{index}", nodes: 2}
nodes:
- shape: gpu
  count: 3
  labels: {model: a}
  resources: {cpu: "8", memory: 64Gi}
  devices:
  - driver: gpu.example.com
    count: 4
    name: "gpu-{index}"
    attributes: {model: A, fast: true, version: {version: 1.2.3}}
    capacity: {memory: 40Gi}
    numaNodes: 2
"""


def load(text: str) -> Nodes:
    return expand(read_fleet(text, "fleet.yaml"), "fleet.yaml")


def shipped(name: str) -> Nodes:
    file = FLEETS / f"{name}.yaml"
    nodes = expand(read_fleet(file.read_text(), file.name), file.name)
    plan_faults(nodes.fleet.faults, nodes, file.name)
    return nodes


def test_a_good_fleet_is_accepted() -> None:
    """The file that the other tests break is right as it stands."""
    assert list(load(GOOD).by_name) == ["gpu-0", "gpu-1", "gpu-2"]


@pytest.mark.parametrize(
    ("old", "new", "field", "rule"),
    [
        ("name: test", "name: [", "line 6", "is not YAML"),
        ("kind: Fleet", "kind: Flet", "kind", "must be Fleet"),
        ("v1alpha1", "v9", "apiVersion", "must be moorings.dev/v1alpha1"),
        ("name: test", "name: Test", "name", "lowercase DNS name"),
        ("name: test", "nam: test", "", "unknown field `nam`"),
        ("count: 3", "count: three", "nodes[0].count", "Expected `int`, got `str`"),
        ("count: 3", "count: 0", "nodes[0].count", "at least 1"),
        ("count: 3", "count: 100001", "nodes", "at most 100000 nodes"),
        ("nodes: 2}", "nodes: 2, groups: 2}", "topology[0]", "exactly one of"),
        ("r{index}", "r{rack}", "topology[0].value", "only {index} can be filled in"),
        ("r{index}", "r {index}", "nodes[0].labels", "no value for a label"),
        ("{model: a}", '{"a b": a}', "nodes[0].labels[a b]", "key of a label"),
        ("{model: a}", '{model: "a b"}', "nodes[0].labels", "no value for a label"),
        ("64Gi", "64Qi", "nodes[0].resources", "is not a quantity"),
        ("64Gi", "-1", "nodes[0].resources[memory]", "not be negative"),
        ("gpu.example.com", "GPU", "nodes[0].devices[0].driver", "lowercase DNS name"),
        ("count: 4", "count: 2000", "nodes[0].devices[0].count", "between 1 and 1024"),
        ("gpu-{index}", "gpu", "nodes[0].devices[0].name", "must have {index}"),
        ("gpu-{index}", "gpu-{i}{index}", "nodes[0].devices[0].name", "has '{i}'"),
        ("gpu-{index}", "g.{index}", "nodes[0].devices", "not a device name"),
        ("numaNodes: 2", "numaNodes: 5", "nodes[0].devices[0].numaNodes", "count (4)"),
        ("numaNodes: 2", "pool: A", "nodes[0].devices", "not a pool name"),
        ("numaNodes: 2", "uuidPrefix: '!'", "devices[0].uuidPrefix", "1 to 24 letters"),
        ("fast: true", "fast: 1.5", "attributes", "got `float`"),
        ("fast: true", "fast: 99999999999999999999", "attributes[fast]", "64 bits"),
        ("fast: true", "uuid: x", "attributes[uuid]", "set by the fleet itself"),
        ("fast: true", "a-b: x", "attributes[a-b]", "must be an identifier"),
        ("fast: true", "X/b: x", "attributes[X/b]", "DNS name before the slash"),
        ("fast: true", f"a: {'x' * 65}", "nodes[0].devices", "over 64 characters"),
        ("1.2.3", "'1.2'", "attributes[version]", "semantic version"),
        ("40Gi", "-40Gi", "capacity[memory]", "not be negative"),
    ],
)
def test_a_broken_rule_is_named_with_its_field(
    old: str, new: str, field: str, rule: str
) -> None:
    """File, field and rule are told, whatever is wrong."""
    assert old in GOOD
    with pytest.raises(SettingsError) as caught:
        load(GOOD.replace(old, new, 1))
    assert caught.value.file == "fleet.yaml"
    assert field in caught.value.field
    assert rule in caught.value.rule


def test_nodes_of_two_shapes_must_not_share_names() -> None:
    """A name means one node of the whole fleet."""
    other = "- {shape: other, count: 1, name: gpu-1}\n"
    with pytest.raises(SettingsError, match=r"nodes\[1\].name: makes 'gpu-1' a second"):
        load(GOOD + other)


def test_devices_of_one_pool_must_not_share_names() -> None:
    """A name means one device of its pool."""
    other = '  - {driver: gpu.example.com, count: 1, name: "gpu-3"}\n'
    with pytest.raises(SettingsError, match="two devices of one driver, pool and name"):
        load(GOOD + other)


def test_too_many_attributes_are_refused() -> None:
    """DRA allows 32 together with those that the fleet sets itself."""
    many = ", ".join(f"a{index}: 1" for index in range(28))
    with pytest.raises(SettingsError, match="at most 27 attributes and capacities"):
        load(GOOD.replace("model: A", many))


@pytest.mark.parametrize("text", ["", "[]", "a: &a [*a]", "\x00", "kind: Fleet"])
def test_what_is_no_fleet_at_all_is_refused(text: str) -> None:
    """With an error of ours, whatever the parser raises."""
    with pytest.raises(SettingsError):
        load(text)


def test_what_the_document_shows_is_accepted() -> None:
    """The examples of docs/fleet.md are fleet and faults files."""
    fleet, faults = re.findall(r"```yaml\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)
    nodes = load(fleet)
    assert len(nodes.by_name) == 32
    assert len(plan_faults(read_faults(faults, "f"), nodes, "f")) == 34


def test_an_empty_faults_file_has_no_faults() -> None:
    """Emptying the file ends all faults."""
    assert read_faults("", "faults.yaml") == ()
    assert read_faults("faults: []", "faults.yaml") == ()


def test_openb_has_the_nodes_and_gpus_of_the_trace() -> None:
    """1,213 nodes have 6,212 GPUs of 7 models, 310 have none."""
    nodes = shipped("openb")
    gpus_of_nodes: Counter[int] = Counter()
    models: Counter[str] = Counter()
    cores = 0
    for node in nodes.by_name:
        found = nodes.make_devices(node)
        gpus = [device for pool in found.pools for device in pool.devices]
        gpus_of_nodes[len(gpus)] += 1
        models.update(
            device.attributes["productName"].string_value or "" for device in gpus
        )
        cores += int(found.resources["cpu"].text) if gpus else 0
    assert gpus_of_nodes == {0: 310, 1: 24, 2: 518, 4: 54, 8: 617}
    assert models == {
        "G2": 4392,
        "T4": 842,
        "G3": 312,
        "P100": 265,
        "V100M32": 204,
        "V100M16": 195,
        "A10": 2,
    }
    assert cores == 107_018


@pytest.mark.parametrize("name", ["small", "faulty"])
def test_small_fleets_have_pairs_of_gpu_and_nic(name: str) -> None:
    """Each GPU shares PCIe root and rail with the NIC of its number."""
    nodes = shipped(name)
    assert len(nodes.by_name) == 8
    racks = Counter(
        nodes.make_devices(node).labels["topology.kubernetes.io/rack"]
        for node in nodes.by_name
    )
    assert sorted(racks.values()) == [4, 4]
    gpus, nics = nodes.make_devices(next(iter(nodes.by_name))).pools
    for gpu, nic in zip(gpus.devices, nics.devices, strict=True):
        for shared in ("resource.kubernetes.io/pcieRoot", "net.moorings.dev/rail"):
            assert gpu.attributes[shared] == nic.attributes[shared]
    numa = [d.attributes["resource.kubernetes.io/numaNode"] for d in gpus.devices]
    assert [value.int_value for value in numa] == [0] * 4 + [1] * 4
