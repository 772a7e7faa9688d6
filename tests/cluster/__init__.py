"""Tests of nodes, pods and namespaces as a snapshot."""
