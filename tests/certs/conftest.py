"""Fixtures of the certificates' tests."""

from tests.certs.command import certs

__all__ = ["certs"]
