"""Tests of the order in which reviews are answered."""
