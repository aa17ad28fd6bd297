"""How many pods make a gang whole, as they say themselves."""

from __future__ import annotations

import pytest

from contracts.names import GANG, GANG_SIZE
from contracts.pods.declared_sizes import UnknownSize, read_declared_size
from contracts.pods.membership import WorkloadAPI, read_membership
from contracts.workload import Pod
from tests.builders import pod


def labelled(size: str = "", name: str = "a") -> Pod:
    annotations = {GANG_SIZE: size} if size else {}
    return pod(name, labels={GANG: "train"}, annotations=annotations)


def size_of(*pods: Pod) -> int | UnknownSize | None:
    return read_declared_size(pods, read_membership(pods[0], frozenset(WorkloadAPI)))


def test_the_annotation_says_the_size() -> None:
    assert size_of(labelled("4"), labelled("4", "b")) == 4


@pytest.mark.parametrize(
    ("sizes", "reason", "words"),
    [
        (("",), "GangSizeMissing", "there is no Gang object 'train'"),
        (("4", ""), "GangSizeInvalid", "4, none"),
        (("0",), "GangSizeInvalid", "'0' is not a number from 1 to 5000"),
        (("²",), "GangSizeInvalid", "not a number"),
        (("5001",), "GangSizeInvalid", "not a number"),
    ],
)
def test_a_size_that_is_none_is_named(
    sizes: tuple[str, ...], reason: str, words: str
) -> None:
    told = size_of(*(labelled(size) for size in sizes))
    assert isinstance(told, UnknownSize)
    assert told.reason == reason
    assert words in told.message
