"""One file, one kube-scheduler plugin under its upstream name. Plugins do not know each other."""
