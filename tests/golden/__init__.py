"""Golden cases: one YAML file each, with a pod and the expected result of its admission."""
