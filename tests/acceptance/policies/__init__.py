"""Policies and limits on the real API server."""
