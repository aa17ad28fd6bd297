"""The complete model: every rule of an allocation over counts of like things."""
