"""Tests of `placement_doctor`."""
