"""The real Kueue beside a control plane of the tests."""
