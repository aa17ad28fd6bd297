"""Health of allocated devices -> conditions in the status of their claims."""
