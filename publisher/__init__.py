"""Writes decisions as Kubernetes objects and says what became of them."""
