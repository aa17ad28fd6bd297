"""Announces the devices of a node and judges their health."""
