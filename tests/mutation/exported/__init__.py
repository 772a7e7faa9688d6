"""Tests of the policies that are exported to the API server."""
