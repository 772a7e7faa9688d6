"""Fixtures of the controller's tests."""

from tests.support.programs.command import certs

__all__ = ["certs"]
