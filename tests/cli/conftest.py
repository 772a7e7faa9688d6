"""Fixtures of the commands' tests."""

from tests.cli.command import run

__all__ = ["run"]
