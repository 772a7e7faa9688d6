"""Tests of the predictions of commands."""
