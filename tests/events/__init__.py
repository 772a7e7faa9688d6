"""Kubernetes Events about pods."""
