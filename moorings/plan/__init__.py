"""Offline plans: Kubernetes objects in, allocations out; no server needed."""
