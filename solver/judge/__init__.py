"""Whether an answer is right, in plain Python, knowing no engine."""
