"""One pod after the other, each where least of what is left loses its value."""
