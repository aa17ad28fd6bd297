"""What may be done next for the pods of a gang, from what is observed."""
