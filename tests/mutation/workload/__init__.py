"""Tests of what the annotations of a pod request."""
