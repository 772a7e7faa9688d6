"""Pods that wait, and the nodes they are assumed on."""
