"""Tests of what plugins read of a pod."""
