"""Gangs, nodes and devices as rows, for all that show them."""
