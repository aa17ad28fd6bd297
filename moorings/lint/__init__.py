"""What in a cluster's objects would only fail at run time, found without deciding."""
