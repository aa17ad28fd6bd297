"""In one process: problems to judged decisions."""
