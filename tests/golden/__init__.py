"""Golden cases: one YAML each, from a pod to all that admission makes of it."""
