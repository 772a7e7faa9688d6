"""Tests of webhook/cli/commands."""
