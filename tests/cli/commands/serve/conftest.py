"""Fixtures of the tests of `serve`."""

from tests.cli.commands.serve.served import tls_dir

__all__ = ["tls_dir"]
