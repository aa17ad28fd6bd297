"""The pattern engine: which sets of pods fit on a node of a kind, and how often."""
