"""Decides which devices each gang gets; a folder a stage, read from top to bottom."""
