"""Gangs packed onto nodes that are cut into parts: construct, bound, improve."""
