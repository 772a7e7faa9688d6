"""Audit logs of several replicas."""
