"""Fixtures of the tests of the commands."""

from tests.support.programs.command import run

__all__ = ["run"]
