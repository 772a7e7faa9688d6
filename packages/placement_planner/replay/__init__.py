"""Decide on recorded admissions by another policy, and report the differences.

`admission` is one recorded admission; `audit_logs` and `cluster_objects` read admissions. `decision` decides on an
admission by a policy and compares two decisions. `policy_comparison` does both for many admissions and counts the
changes.
"""
