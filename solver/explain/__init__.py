"""Why the answer is no, and what would help."""
