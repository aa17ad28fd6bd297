"""What an agent costs the pods of its node, beside a real kubelet."""
