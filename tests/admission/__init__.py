"""Tests of the core: the decision on one pod."""
