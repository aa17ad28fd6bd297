"""The source `counted`: integers as devices, amounts in steps as one that is shared."""

from __future__ import annotations

import pytest

from contracts.device import Device
from contracts.ids import DeviceID, DeviceName, DriverName, NodeName, PoolName
from contracts.validate.devices import check_device
from nodeagent.errors import SettingsError, SourceError
from nodeagent.sources.counted import CountedSource, CountedSpec
from nodeagent.sources.source_file import read_sources

NODE = NodeName("n-0")
FILE = """
apiVersion: moorings.dev/v1alpha1
kind: Sources
sources:
- kind: counted
  name: things
  driver: things.example.com
  resources: [{}]
"""


def read(*resources: str) -> CountedSource:
    text = FILE.format(", ".join(resources))
    (spec,) = read_sources(text, "s.yaml", NODE)
    assert isinstance(spec, CountedSpec)
    return CountedSource(spec, NODE)


async def devices_of(*resources: str) -> tuple[Device, ...]:
    (pool,) = (await read(*resources).discover(NODE)).pools
    return pool.devices


@pytest.mark.parametrize("count", ["3", '"3"', "3000m", "3e0", "0.003k"])
async def test_a_whole_number_is_so_many_devices(count: str) -> None:
    """However it is written."""
    devices = await devices_of(f"{{name: foo, count: {count}}}")
    assert [device.name for device in devices] == ["foo-0", "foo-1", "foo-2"]
    assert devices[0].attributes["kind"].string_value == "foo"


async def test_units_of_1024_count_too() -> None:
    """3Ki dongles are many, and an integer."""
    assert len(await devices_of("{name: foo, count: 3Ki}")) == 3072


async def test_an_amount_in_steps_is_one_device_that_is_shared() -> None:
    """As the API server takes it: what a claim gets is a multiple of the step."""
    (device,) = await devices_of("{name: scratch, total: 800Gi, step: 100Gi}")
    assert device.name == "scratch"
    assert device.allow_multiple_allocations
    capacity = device.capacity["size"]
    assert capacity.request_policy is not None
    limits = capacity.request_policy.valid_range
    assert limits is not None
    assert str(capacity.value) == "800Gi"
    assert [str(x) for x in (limits.min, limits.step, limits.max)] == [
        "100Gi",
        "100Gi",
        "800Gi",
    ]
    assert str(capacity.request_policy.default) == "100Gi"
    assert list(check_device(device, "", selects_nodes=False)) == []


@pytest.mark.parametrize(
    ("resource", "said"),
    [
        ("{name: foo, count: 0.5}", "[0].count: 0.5: must be an integer: 3, 3000m"),
        ("{name: foo, count: 1500m}", "[0].count: 1500m: must be an integer"),
        ("{name: foo, count: 0}", "[0].count: 0: must be at least 1"),
        ("{name: foo, count: -1}", "[0].count: -1: must be at least 1"),
        ("{name: foo, count: 5000}", "[0].count: 5000: must be at most 4096"),
        ("{name: foo, count: many}", "[0].count: 'many' is not a quantity"),
        ("{name: foo, count: true}", "[0].count: "),
        ("{name: foo}", "[0]: must have either count, or total and step"),
        ("{name: foo, total: 3}", "[0]: must have either"),
        ("{name: foo, count: 1, total: 3, step: 1}", "[0]: must have either"),
        ("{name: foo, total: 3, step: 0}", "[0].step: 0: must be at least 1"),
        ("{name: foo, total: 3, step: 2}", "[0].total: 3: must be a multiple of"),
        ("{name: foo, total: 3, step: 3}", "[0].step: 3: must be less than total"),
        ("{name: foo, total: 2500m, step: 1}", "[0].total: 2500m: must be an integer"),
        ("{name: Foo, count: 1}", "[0].name: Invalid value"),
        ("{name: foo, count: 1, attributes: {a b: 1}}", "[0].attributes: "),
        ("{name: foo, count: 1, size: 2}", "unknown field `size`"),
        ("{name: a, count: 2}, {name: a-1, total: 2, step: 1}", "[1].name: "),
        ("{name: a, count: 4000}, {name: b, count: 97}", "[1]: makes more than 4096"),
    ],
)
def test_what_is_no_count_is_refused(resource: str, said: str) -> None:
    """With file, field and rule; nothing is rounded."""
    with pytest.raises(SettingsError) as caught:
        read(resource)
    assert str(caught.value).startswith("s.yaml: sources[0]")
    assert said in str(caught.value)


async def test_a_container_learns_which_one_it_has() -> None:
    """By an environment variable; of what is not there nothing is said."""
    source = read("{name: foo, count: 1}")
    driver = DriverName("things.example.com")
    device = DeviceID(driver, PoolName("n-0"), DeviceName("foo-0"))
    assert (await source.edits(device)).env == (
        "MOORINGS_DEVICE_N_0_FOO_0=things.example.com/n-0/foo-0",
    )
    gone = DeviceID(driver, PoolName("n-0"), DeviceName("foo-1"))
    with pytest.raises(SourceError, match="foo-1 is not here"):
        await source.edits(gone)
