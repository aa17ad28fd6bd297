"""The values that travel between Moorings' processes.

Structs in the words of `resource.k8s.io/v1`, the messages of the bus and its one table
of topics, and the life of a gang that follows from what was said of it. Imports only
msgspec and the standard library.
"""
