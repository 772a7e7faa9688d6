"""Tests of connections, requests and their limits."""
