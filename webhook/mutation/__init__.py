"""Injection: read the workload from annotations, turn it into edits by rules, and apply the edits to the pod."""
