"""What is known of a cluster, changed by messages alone; phases are in contracts."""
