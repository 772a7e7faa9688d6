"""Tests of pods of a cluster by what they do."""
