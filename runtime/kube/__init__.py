"""The way to a Kubernetes API server: requests, kinds, answers, errors."""
