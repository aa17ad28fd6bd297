"""Order over time: what will be free when, what is kept for whom, and who would go."""
