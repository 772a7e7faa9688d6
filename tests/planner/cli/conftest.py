"""Fixtures of the tests of the commands of the planner."""

from tests.support.programs.command import run

__all__ = ["run"]
