"""The kubelet of this node: gRPC over the sockets in its folder."""
