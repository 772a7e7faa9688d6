"""Cluster objects other than nodes and pods."""
