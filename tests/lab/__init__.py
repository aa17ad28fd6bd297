"""Real servers and processes for tests and benchmarks."""
