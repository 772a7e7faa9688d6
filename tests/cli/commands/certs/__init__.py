"""Tests of the command `certs`."""
