"""Diagnose an installation: what is wrong in a cluster, and how to mend it.

`gatherer` reads the cluster once; everything else is pure. Each check is one file in `checks` and a row of `registry`.
"""
