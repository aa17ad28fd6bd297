"""Gangs whose pods are in domains of nodes, placed where counting finds room."""
