"""Extended resources in the status of a Node, which pods ask for by name."""
