"""Tests of several replicas and of gangs."""
