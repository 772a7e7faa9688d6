"""Fixtures of the tests of inputs."""

from tests.support.programs.commands_on_files import cluster_file, command

__all__ = ["cluster_file", "command"]
