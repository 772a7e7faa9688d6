"""Tests of the objects of dynamic resource allocation."""
