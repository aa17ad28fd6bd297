#!/usr/bin/env bash
# Starts a node in the namespaces that it is given: its own mounts, processes and network.
# Nothing of it is seen outside but its folder and its cgroups.
# Usage: start.sh FOLDER (with the files of tests/lab/node/node.py) PYTHON
set -euo pipefail
folder=$1 python=$2
export PATH=$folder/bin:$PATH

mount --make-rprivate /
for path in /run/containerd /run/cdi /etc/cdi /var/lib/kubelet /var/lib/cni /var/log/containers; do
  mkdir -p "$path"
  mount -t tmpfs -o mode=0755 tmpfs "$path"
done
mount --make-shared /var/lib/kubelet
for path in plugins plugins_registry pod-resources; do # an agent may run outside
  mkdir -p "/var/lib/kubelet/$path"
  mount --bind "$folder/kubelet/$path" "/var/lib/kubelet/$path"
done
mount --bind "$folder/cdi" /run/cdi
: >"$folder/resolv.conf" # nobody beyond the node is asked for names
ip link set lo up
ip address add 10.96.0.1/32 dev lo
ip address add 10.96.0.10/32 dev lo
ip link add node0 type veth peer name nobody # no kernel lacks veth: pods need it
ip address add 10.87.0.1/24 dev node0
ip link set nobody up
ip link set node0 up
ip route add default dev node0
echo 1 >/proc/sys/net/ipv4/ip_forward

"$python" -m tests.lab.node.network "$folder" >"$folder/network.log" 2>&1 &
containerd --config "$folder/containerd.toml" --log-level warn >"$folder/containerd.log" 2>&1 &
until ctr --address /run/containerd/containerd.sock version >/dev/null 2>&1; do sleep 0.1; done
for image in "$folder"/images/*.tar; do
  ctr --address /run/containerd/containerd.sock -n k8s.io images import --local "$image" >/dev/null
done
while :; do # killed, kubelet comes back, as a service manager would have it
  kubelet $(cat "$folder/kubelet.arguments") >>"$folder/kubelet.log" 2>&1 &
  echo $! >"$folder/kubelet.pid"
  wait $! || true
  sleep 0.2
done
