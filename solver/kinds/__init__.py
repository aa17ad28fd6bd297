"""What cannot be told apart, counted: requests, pods, gangs, devices, nodes."""
