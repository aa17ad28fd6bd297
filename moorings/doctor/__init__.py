"""Looks at a cluster and a bus, and says what is wrong with them and what to do."""
