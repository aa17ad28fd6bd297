"""CEL, evaluated in recycled sandbox processes: selectors and derived attributes."""
