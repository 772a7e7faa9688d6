"""Tests of the indexes over nodes and pods."""
