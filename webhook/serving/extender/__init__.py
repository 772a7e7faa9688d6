"""The scheduler extender."""
