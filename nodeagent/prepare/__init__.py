"""What an allocated claim gets on this node: decided here, remembered and undone."""
