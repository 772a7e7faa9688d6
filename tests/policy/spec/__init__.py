"""Tests of the fields of a PlacementPolicy."""
