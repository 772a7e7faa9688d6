"""Nodes, pods and namespaces as the scorer sees them: an immutable snapshot."""
