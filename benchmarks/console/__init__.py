"""The web console in a real browser, beside a stack of simulated nodes."""
