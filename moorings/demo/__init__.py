"""The main job on this machine, step by step."""
