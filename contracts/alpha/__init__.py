"""Objects of `resource.k8s.io` v1alpha2 and v1alpha3, said in v1."""
