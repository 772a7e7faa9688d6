"""The remaining capacity of a cluster: count further pods, drain nodes, and make room."""
