"""A control-plane controller for classic DRA: Kubernetes 1.30 and 1.31."""
