"""Tests of `policy`, `mutate` and `simulate`."""
