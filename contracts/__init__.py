"""What travels between Moorings' processes, and nothing that any of them does.

Structs in the words of `resource.k8s.io/v1`, the messages of the bus and its one table
of topics. Imports only msgspec and the standard library.
"""
