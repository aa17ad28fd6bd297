"""The scheduler in virtual time: traces in, waits, utilisation and promises out."""
