"""Device selectors: one function, evaluated in recycled sandbox processes."""
