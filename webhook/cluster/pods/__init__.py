"""Pods of a cluster by what they do: run, wait, are bound or nominated."""
