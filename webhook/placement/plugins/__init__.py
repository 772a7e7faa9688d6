"""Models of kube-scheduler plugins under their upstream names, one in each module. Plugins do not import each other."""
