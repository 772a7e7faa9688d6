"""Tests of packages/placement_planner."""
