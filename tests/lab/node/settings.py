"""How the programs of a node are set up: containerd, its network, kubelet.

The node is alone in its network: each node of the tests has the same addresses.
"""

from __future__ import annotations

from tests.lab.controlplane.client import Json

API_ADDRESS, DNS_ADDRESS = "10.96.0.1", "10.96.0.10"
"""The first is the Service `kubernetes`, which the server's certificate names."""
NODE_ADDRESS, POD_SUBNET = "10.87.0.1", "10.88.0.0/16"
CONTAINERD = "/run/containerd/containerd.sock"
PAUSE = "registry.k8s.io/pause:3.10.1"
CNI_PLUGINS = "/usr/lib/cni"
CDI_FOLDERS = ("/etc/cdi", "/var/run/cdi")


def containerd_config(folder: str) -> str:
    """Give containerd's settings, its own files in a folder.

    Without restrict_oom_score_adj no sandbox starts where root may not lower its score.
    """
    return f"""version = 3
root = "{folder}/containerd"
state = "/run/containerd"
[grpc]
address = "{CONTAINERD}"
[plugins."io.containerd.cri.v1.images".pinned_images]
sandbox = "{PAUSE}"
[plugins."io.containerd.cri.v1.runtime"]
restrict_oom_score_adj = true
disable_apparmor = true
enable_cdi = true
cdi_spec_dirs = ["{'", "'.join(CDI_FOLDERS)}"]
[plugins."io.containerd.cri.v1.runtime".cni]
bin_dirs = ["{CNI_PLUGINS}"]
conf_dir = "{folder}/cni"
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
"""


def network_config() -> Json:
    """Give the one network: a bridge, an address a pod."""
    bridge = {
        "type": "bridge",
        "bridge": "pods0",
        "isGateway": True,
        "ipam": {
            "type": "host-local",
            "ranges": [[{"subnet": POD_SUBNET}]],
            "routes": [{"dst": "0.0.0.0/0"}],
        },
    }
    return {"cniVersion": "1.0.0", "name": "pods", "plugins": [bridge]}


def kubelet_config(cgroup_root: str, log_folder: str) -> Json:
    """Give kubelet's settings; the rest are its defaults."""
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": "127.0.0.1",
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": False},
        },
        "authorization": {"mode": "AlwaysAllow"},
        "containerRuntimeEndpoint": f"unix://{CONTAINERD}",
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": cgroup_root,
        "cgroupsPerQOS": True,
        "enforceNodeAllocatable": [],
        "failCgroupV1": False,
        "failSwapOn": False,
        "makeIPTablesUtilChains": False,
        "clusterDNS": [DNS_ADDRESS],
        "clusterDomain": "cluster.local",
        "resolvConf": "",
        "podLogsDir": log_folder,
        "evictionHard": {"memory.available": "10Mi", "nodefs.available": "1%"},
        "serializeImagePulls": False,
        "nodeStatusReportFrequency": "10s",
    }
