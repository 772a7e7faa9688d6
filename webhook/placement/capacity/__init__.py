"""Capacity: how many more pods fit, the largest free blocks, drained nodes, and pods to move to make room."""
