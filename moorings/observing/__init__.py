"""Reads what the doctor judges: a cluster through its API server, a bus as a user."""
