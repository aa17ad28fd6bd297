"""Clocks of processes that a test steps, forwards and back."""
