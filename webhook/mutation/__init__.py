"""Injection: read the workload from annotations, let rules turn it into edits, and apply the edits to the pod."""
