"""Tests of the storage objects."""
