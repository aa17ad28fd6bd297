"""The Kubernetes sink: what is observed of a cluster, and what is written to it."""
