"""Identity on the bus from Kubernetes: service-account tokens become users of NATS."""
