"""The addresses of a NIC that a pod was given, read from the agent's own pod.

Real network namespaces, joined as a pod's and its node's are: by a pair of veth.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

import pytest

MAC = "02:00:00:00:00:05"
NODE = """
set -eu
unshare -n sleep 60 & agent=$!
unshare -n sleep 60 & pod=$!
trap 'kill $agent $pod' EXIT
for one in $agent $pod; do
  while [ "$(readlink /proc/$one/ns/net)" = "$(readlink /proc/$$/ns/net)" ]; do :; done
done
ip link add agent0 type veth peer name eth0 netns $agent
ip link add pod0 type veth peer name eth0 netns $pod
ip link add nic type veth peer name wire
ip link set nic address %(mac)s
ip addr add 10.0.0.5/24 dev nic
nsenter -t $agent -n setpriv --bounding-set "$1" --inh-caps -all "$2" -c "$3"
ip link set nic netns $pod
nsenter -t $pod -n ip addr add 10.1.0.5/24 dev nic
nsenter -t $agent -n setpriv --bounding-set "$1" --inh-caps -all "$2" -c "$3"
"""
"""A node with an agent in a pod's network; its NIC goes to another pod."""
LOOK = f"""
import json
from nodeagent.sources.sysfs.addresses import find_network
from nodeagent.sources.sysfs.functions import Interface
found = find_network("0000:3b:00.0", Interface(name="nic", path="", mac={MAC!r}))
print(json.dumps(found.addresses))
"""


def look_from_a_pod(capabilities: str) -> list[list[str]]:
    """Return what an agent sees of a NIC in the node and then in a pod."""
    script = NODE % {"mac": MAC}
    command = ["unshare", "-n", "sh", "-c", script, "sh", capabilities]
    told = subprocess.run(
        [*command, sys.executable, LOOK],
        capture_output=True,
        check=True,
        text=True,
        timeout=120,
    )
    return [json.loads(line) for line in told.stdout.splitlines()]


def has_namespaces() -> bool:
    """True if this machine lets us make networks of our own."""
    programs = ("unshare", "nsenter", "setpriv", "ip")
    if os.geteuid() != 0 or not all(map(shutil.which, programs)):
        return False
    probe = ["unshare", "-n", "ip", "link", "add", "probe0", "type", "veth"]
    return subprocess.run(probe, capture_output=True, check=False).returncode == 0


@pytest.mark.skipif("not has_namespaces()", reason="no network namespaces here")
def test_addresses_are_read_from_the_node_and_from_pods_with_one_capability() -> None:
    """CAP_NET_ADMIN alone; without it nothing is told and nothing fails."""
    assert look_from_a_pod("-all,+net_admin") == [["10.0.0.5/24"], ["10.1.0.5/24"]]
    assert look_from_a_pod("-all") == [[], []]
