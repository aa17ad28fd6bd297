"""What node agents announce -> the ResourceSlices that drivers would publish."""
