"""Tests of suggestions."""
