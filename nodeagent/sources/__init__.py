"""Where devices and their readings come from."""
