"""The kinds of schedulers, and the fields of a pod that each reads. Each has a module and an entry in the registry."""
