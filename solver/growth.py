"""How many pods are asked for in one batch that gangs can do without.

Who lines gangs up to grow keeps to it, so that whoever is in such a batch is tried.
"""

MOST_EXTRA = 4_096
"""Pods, but one of each member at least; the rest may be asked for later."""
MOST_GROWN = 16
"""Gangs with rules that span pods; likewise. Each is tried by itself."""
