"""Fixtures of the commands' tests."""

from tests.support.command import run

__all__ = ["run"]
