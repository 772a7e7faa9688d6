"""Waiting pods, and the nodes on which they are assumed."""
