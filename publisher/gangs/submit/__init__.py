"""What waiting pods are asked for: when a gang is whole, and as what."""
