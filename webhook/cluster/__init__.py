"""Immutable snapshots of a cluster: nodes, pods, namespaces and other objects that the scorer reads."""
