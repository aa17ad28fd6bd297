"""What node agents announce, as objects of the API server: slices, taints, status."""
