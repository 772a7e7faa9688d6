"""Diagnose an installation: find what is wrong in a cluster and how to fix it.

`reader` reads a `Cluster` once, with each `Source` that checks need; it uses `questions` for a dry-run creation.
Everything else is pure. The checks, in `checks`, evaluate the `Cluster`. `registry` lists them in the order of their
findings, and `check.diagnose` runs them. A remedy is text with commands in backticks, which `commands` builds.
"""
