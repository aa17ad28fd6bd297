"""Clusters and gangs that several benchmarks share."""
