"""Rules between pods: the running pods that matter, and rules once resolved."""
