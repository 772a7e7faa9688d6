"""Capacity: how many more pods fit, and the largest free blocks of accelerators."""
