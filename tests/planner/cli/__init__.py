"""Tests of the commands `capacity`, `replay` and `simulate`."""
