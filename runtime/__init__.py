"""How every service behaves: its start and stop, configuration, logs and peers."""
