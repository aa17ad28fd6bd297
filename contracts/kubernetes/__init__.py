"""Kubernetes JSON <-> our Structs: versions, shapes, defaults."""
