"""What pods and the objects that make them say: members, node affinity, resources."""
