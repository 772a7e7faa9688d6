"""Fixtures of the tests of the audit log."""

from tests.audit.written_log import log

__all__ = ["log"]
