"""Gangs taken in one after the other, by every rule that there is."""
