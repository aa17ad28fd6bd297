"""Which pods a change of a volume, claim or class is about."""

from __future__ import annotations

from msgspec.structs import replace

from contracts.storage import ClaimReference
from publisher.gangs.volumes import Volumes
from tests.builders.pods import waiting_pod
from tests.builders.storage import storage_class, volume, volume_claim, volume_of
from tests.builders.values import NAMESPACE

POD = waiting_pod("a", volumes=(volume_of(),))
KEY, DATA = f"{NAMESPACE}/a", f"{NAMESPACE}/data"


def known() -> Volumes:
    """Know a pod and its claim, which has no volume yet."""
    volumes = Volumes()
    volumes.note_pod(KEY, POD)
    volumes.apply_claim(DATA, volume_claim())
    return volumes


def test_a_claim_is_about_its_pods() -> None:
    volumes = known()
    assert volumes.apply("PersistentVolumeClaim", DATA, volume_claim()) == {KEY}
    assert volumes.apply("PersistentVolumeClaim", f"{NAMESPACE}/x", None) == set()
    assert volumes.apply("Secret", DATA, None) == set()
    volumes.forget_pod(KEY, POD)
    assert volumes.apply("PersistentVolumeClaim", DATA, None) == set()


def test_a_class_and_a_free_volume_are_about_those_that_wait_for_one() -> None:
    volumes = known()
    assert volumes.apply("StorageClass", "late", storage_class()) == {KEY}
    assert volumes.apply("StorageClass", "other", storage_class("other")) == set()
    assert volumes.apply("PersistentVolume", "pv-1", volume()) == {KEY}
    assert [each.metadata.name for each in volumes.free_volumes("late")] == ["pv-1"]
    other = volume("pv-2", storage_class="other")
    assert volumes.apply("PersistentVolume", "pv-2", other) == set()
    volumes.apply_claim(DATA, volume_claim(bound_to="pv-1"))
    assert volumes.apply("StorageClass", "late", storage_class()) == set()


def test_a_bound_volume_is_about_the_pods_of_its_claim() -> None:
    volumes = known()
    ref = ClaimReference(namespace=NAMESPACE, name="data")
    bound = replace(volume(), spec=replace(volume().spec, claim_ref=ref))
    assert volumes.apply("PersistentVolume", "pv-1", bound) == {KEY}
    assert volumes.apply("PersistentVolume", "pv-1", None) == {KEY}
    assert not list(volumes.free_volumes("late"))
