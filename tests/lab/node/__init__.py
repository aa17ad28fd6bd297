"""A node for tests: a real kubelet, and containers in namespaces of their own."""
