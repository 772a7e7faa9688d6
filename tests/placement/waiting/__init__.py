"""Tests of assumed and waiting pods."""
