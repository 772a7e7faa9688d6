"""Tests of packages/placement_reclaim."""
