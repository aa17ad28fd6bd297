"""Reads pods and their controllers: members, node affinity, resources."""
