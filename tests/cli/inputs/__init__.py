"""Tests of webhook/cli/inputs."""
