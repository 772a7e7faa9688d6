"""Tests of what the API server sends and takes."""
