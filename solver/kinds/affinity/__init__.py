"""Rules between pods, resolved into node sets, amounts and domains."""
