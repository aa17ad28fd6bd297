"""The recorded question of a solve, frozen and hashed, and how it is put together."""
