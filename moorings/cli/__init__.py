"""One executable; a module per group of commands."""
