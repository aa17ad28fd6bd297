"""What travels between Moorings' processes, and nothing that any of them does.

Structs in the words of `resource.k8s.io/v1`, the messages on the bus and their
subjects. Everything here except `process/` imports only msgspec and the standard
library, so every package can share it without sharing behaviour.
"""
