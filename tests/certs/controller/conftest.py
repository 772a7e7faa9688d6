"""Fixtures of the controller's tests."""

from tests.support.command import certs

__all__ = ["certs"]
