"""Who knows the right answer: brute force, and upstream's own code."""
