"""The solver as a process: messages in, decisions out."""
