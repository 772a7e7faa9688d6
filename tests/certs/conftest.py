"""Fixtures of the certificates' tests."""

from tests.support.command import certs

__all__ = ["certs"]
