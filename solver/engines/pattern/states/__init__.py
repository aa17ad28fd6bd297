"""What a node may become, pod by pod: states, steps, and what makes two of them one."""
