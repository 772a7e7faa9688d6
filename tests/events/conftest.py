"""Fixtures of the tests of Events."""

from tests.events.scene import play

__all__ = ["play"]
