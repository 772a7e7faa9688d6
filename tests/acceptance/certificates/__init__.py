"""Certificates on the real API server."""
