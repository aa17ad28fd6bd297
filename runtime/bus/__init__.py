"""The bus of a process: NATS connection, streams, following, publishing, blobs."""
