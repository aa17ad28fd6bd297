"""Manifests of older clusters, as a cluster with `resource.k8s.io/v1` takes them."""
