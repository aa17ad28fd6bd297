"""Quotas in Kueue's words: what is left for a gang, and of which flavor."""
