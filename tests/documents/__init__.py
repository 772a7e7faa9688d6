"""Tests of JSON, YAML and errors that name a field."""
