"""The sink without a cluster: decisions become manifests in a folder."""
