"""Prepares allocated claims on this node, remembers and undoes it."""
