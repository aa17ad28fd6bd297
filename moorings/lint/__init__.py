"""Finds mistakes in a cluster's objects before they fail at run time."""
