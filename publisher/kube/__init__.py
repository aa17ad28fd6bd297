"""The Kubernetes client: requests, watches, kinds, errors, and leading by a Lease."""
