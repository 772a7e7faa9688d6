"""Fixtures of the tests of `certs`."""

from tests.support.programs.command import certs

__all__ = ["certs"]
