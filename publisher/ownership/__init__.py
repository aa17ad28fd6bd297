"""Whose devices Moorings decides about, and the taints that say so."""
