"""Tests of the profiles of batch schedulers."""
