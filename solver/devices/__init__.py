"""Devices as each node sees them: pools, candidates, capacity, node selectors."""
