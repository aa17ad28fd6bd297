from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from publisher.kube.former import describe_process, is_gone
from publisher.kube.holder import HolderProcess

US = describe_process("")
DESCRIBE = """
import sys, time
from publisher.kube.former import describe_process
print(describe_process(sys.argv[1]).add_to("host-1-abc"), flush=True)
time.sleep(60)
"""


@pytest.fixture
def other() -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Another process of this host that lives, and the identity it holds a Lease by."""
    command = [sys.executable, "-c", DESCRIBE, ""]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process, process.stdout.readline().strip()
        process.kill()


def test_a_process_of_this_host_is_gone_only_once_it_is_dead(
    other: tuple[subprocess.Popen[str], str],
) -> None:
    """However alike the names are."""
    process, holder = other
    assert not is_gone(holder, US)
    process.kill()
    process.wait()
    assert is_gone(holder, US)


def test_a_process_id_that_was_given_away_again_is_another_process() -> None:
    """It began at another time."""
    assert not is_gone(US.add_to("us"), US)
    ours = HolderProcess(US.place, US.pid, "1", "")
    assert is_gone(ours.add_to("us"), US)
    parent = replace(US, pid=os.getppid(), began="1")
    assert is_gone(parent.add_to("us"), US)


def test_nobody_elsewhere_is_known_to_be_dead() -> None:
    """Nor is one whose place is not known, or whose identity says nothing."""
    dead = replace(US, pid=2**22 + 1)
    assert is_gone(dead.add_to("us"), US)
    for place in ("", "0123456789abcdef"):
        assert not is_gone(replace(dead, place=place).add_to("us"), US)
    nowhere = replace(US, place="")
    assert not is_gone(replace(dead, place="").add_to("us"), nowhere)
    for holder in ("", "us", "us_1", "us_a.b.c.d", f"{US.place}.-1.1.", "us_..."):
        assert not is_gone(holder, US)
    for pid in ("0", "9" * 40):
        assert not is_gone(f"us_{US.place}.{pid}.1.", US)


def test_the_former_process_of_our_pod_is_dead() -> None:
    """It ran elsewhere, as seen by its number, so its container ended."""
    ours = replace(US, pod="pod")
    former = replace(ours, place="0123456789abcdef", pid=1)
    assert is_gone(former.add_to("publisher-x-abc"), ours)
    for pod in ("", "another"):
        assert not is_gone(replace(former, pod=pod).add_to("us"), ours)
    assert not is_gone(replace(former, pod="").add_to("us"), US)


def test_a_second_process_in_a_container_leaves_the_first_alone(
    other: tuple[subprocess.Popen[str], str],
) -> None:
    """As by `kubectl exec`: what the kernel says counts first."""
    _, holder = other
    ours = replace(US, pod="pod")
    assert not is_gone(f"{holder}pod", ours)


def test_pods_are_told_apart() -> None:
    digests = [describe_process(uid).pod for uid in ("a", "a", "b", "")]
    assert digests[0] == digests[1] != digests[2]
    assert digests[3] == ""
