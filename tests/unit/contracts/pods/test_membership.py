"""Whose pods belong together, and how many make them whole."""

from __future__ import annotations

import pytest

from contracts.names import GANG, GANG_SIZE, MEMBER
from contracts.pods.membership import (
    Membership,
    UnknownSize,
    read_declared_size,
    read_membership,
)
from contracts.workload import Pod
from tests.builders import pod
from tests.builders.values import NAMESPACE


def labelled(size: str = "", name: str = "a") -> Pod:
    annotations = {GANG_SIZE: size} if size else {}
    labels = {GANG: "train", MEMBER: "worker"}
    return pod(name, labels=labels, annotations=annotations)


def test_our_label_names_the_gang_and_the_member() -> None:
    assert read_membership(labelled()) == Membership(
        namespace=NAMESPACE, group="train", member="worker"
    )


def test_a_pod_without_a_label_is_alone() -> None:
    """Under its own name."""
    assert read_membership(pod("a")) == Membership(
        namespace=NAMESPACE, group="a", is_lone=True
    )


def test_the_annotation_says_the_size() -> None:
    assert read_declared_size([labelled("4"), labelled("4", "b")]) == 4


@pytest.mark.parametrize(
    ("sizes", "reason", "words"),
    [
        (("",), "GangSizeMissing", "there is no Gang object 'train'"),
        (("4", ""), "GangSizeInvalid", "4, none"),
        (("0",), "GangSizeInvalid", "'0' is no number from 1 to 5000"),
        (("²",), "GangSizeInvalid", "no number"),
        (("5001",), "GangSizeInvalid", "no number"),
    ],
)
def test_a_size_that_is_none_is_named(
    sizes: tuple[str, ...], reason: str, words: str
) -> None:
    told = read_declared_size([labelled(size) for size in sizes])
    assert isinstance(told, UnknownSize)
    assert told.reason == reason
    assert words in told.message
