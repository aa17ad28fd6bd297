"""Traces that others have published, as jobs."""
