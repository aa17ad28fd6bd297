"""What we believe: pools, nodes, classes and gangs, changed by messages alone."""
