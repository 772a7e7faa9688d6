"""What tests install in a real API server."""
