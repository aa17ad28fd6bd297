"""Over a real bus: submissions to decisions."""
