"""The whole stack on this machine, with or without a cluster."""
