"""Fixtures of the tests of `doctor`."""

from tests.support.programs.command import run

__all__ = ["run"]
