"""Kubernetes Events about pods that were denied or that no node can take."""
