"""Placement of GPU workloads at admission: rules that inject, and a scorer that checks whether a node fits."""

from importlib.metadata import version

__version__ = version("placement-webhook")
