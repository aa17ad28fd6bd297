"""The source `command`: whatever an executable of anybody lists."""
