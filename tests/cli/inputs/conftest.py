"""Fixtures of the tests of inputs."""

from tests.cli.inputs.commands_on_files import cluster_file, command

__all__ = ["cluster_file", "command"]
