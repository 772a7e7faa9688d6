"""Pods of one template, placed one after the other."""
