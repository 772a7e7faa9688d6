"""Admission of objects other than pods."""
