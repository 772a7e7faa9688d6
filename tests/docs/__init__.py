"""Tests of the documents: commands run, names exist, links resolve."""
