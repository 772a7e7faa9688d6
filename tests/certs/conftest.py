"""Fixtures of the certificates' tests."""

from tests.support.programs.command import certs

__all__ = ["certs"]
