"""Tests of webhook/cluster/batch."""
