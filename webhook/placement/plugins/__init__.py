"""Models of kube-scheduler plugins, one per file, under their upstream names. Plugins do not import each other."""
