"""Gangs that grow: pods asked for beside those that have a place."""
