"""Which patterns the nodes use: pricing, masters, cuts, and whole numbers."""
