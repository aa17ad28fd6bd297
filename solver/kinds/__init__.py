"""Kinds: requests, pods, gangs, devices and nodes that a batch cannot tell apart."""
