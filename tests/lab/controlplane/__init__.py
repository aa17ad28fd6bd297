"""A real Kubernetes control plane on loopback, and what stands in for its kubelets."""
