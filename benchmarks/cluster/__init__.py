"""Beside a real control plane: writes, gates, binding."""
