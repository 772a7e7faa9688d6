"""Tests of CEL expressions."""
