"""Diagnose an installation: what is wrong in a cluster, and how to mend it.

`reader` reads a `Cluster` once, each `Source` that checks need; it asks with `questions`. Everything else is pure. The
checks, in `checks`, judge the `Cluster`. `registry` has them in the order of their findings, and `check.diagnose` runs
them. A remedy is text, with commands in backticks that `commands` words.
"""
