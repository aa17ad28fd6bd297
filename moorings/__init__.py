"""The front door: command line, local stack, offline plans."""
