"""The sink with a cluster: decisions become allocations, gates open, pods are bound."""
