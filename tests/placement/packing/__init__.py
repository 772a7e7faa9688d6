"""Tests of the fragmentation of cards."""
