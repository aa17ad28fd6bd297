"""Checks a cluster and a bus, and names problems with remedies."""
