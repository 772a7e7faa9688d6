"""Fixtures of the tests of `reclaim`."""

from tests.support.programs.command import run

__all__ = ["run"]
