"""Fixtures of the tests of the commands."""

from tests.support.command import run

__all__ = ["run"]
