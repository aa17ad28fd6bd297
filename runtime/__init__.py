"""How every service behaves: start and stop, configuration, retries, logs, the bus."""
