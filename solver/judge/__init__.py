"""Checks an answer by every rule, in plain Python, knowing no engine."""
