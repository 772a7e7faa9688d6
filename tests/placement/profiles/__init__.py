"""Tests of profiles, plugins and releases."""
