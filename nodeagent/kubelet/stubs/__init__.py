"""Messages of kubelet's gRPC interfaces; `scripts/kubelet-stubs.sh` writes this folder.

Generated from the .proto files of k8s.io/kubelet: Copyright The Kubernetes Authors,
Apache License, Version 2.0.
"""
