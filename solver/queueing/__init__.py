"""Which gang is tried when: turns, and what lets a gang be tried again."""
