"""Decide on recorded admissions by another policy, and report what would differ.

`admission` is one recorded admission; `audit_logs` and `cluster_objects` read them. `decision`
decides on one by a policy and compares two decisions, and `replay` does both for many and counts the changes.
"""
