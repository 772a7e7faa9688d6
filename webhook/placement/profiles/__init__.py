"""Scheduler profiles and their plugins."""
