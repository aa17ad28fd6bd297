"""kube-scheduler's own order: the first solution that it would find."""
