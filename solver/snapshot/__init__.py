"""The cluster and its gangs, changed by messages alone."""
