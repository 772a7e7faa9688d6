"""Tests of device allocation."""
