"""Rules between pods: who runs near a batch, and what its rules come to."""
