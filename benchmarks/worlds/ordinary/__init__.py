"""Families of ordinary clusters, written as the objects that `kubectl get` prints.

A family is a function of a number of nodes and a seed. Everything is drawn with the
standard library alone, in a fixed order, so a family, a size and a seed name one world
for good.
"""
