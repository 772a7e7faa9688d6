"""The certs controller against a real API server."""
