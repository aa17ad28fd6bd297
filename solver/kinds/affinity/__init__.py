"""Rules between pods as node sets, amounts and domains of each member."""
