"""Tests of `placement_planner.capacity`."""
