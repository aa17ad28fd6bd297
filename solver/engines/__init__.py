"""Engines, what chooses between them, and how their answers are compared."""
