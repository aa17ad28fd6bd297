"""What an agent costs its node: beside a real kubelet, and with nothing to do."""
