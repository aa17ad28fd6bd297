"""What would be decided if something were otherwise, by the code that decides."""
