"""What is known of gangs, nodes and devices, as rows for whoever shows them."""
