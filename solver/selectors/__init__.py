"""Device selectors: what they can see, and the recorded table of their verdicts."""
