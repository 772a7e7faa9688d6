"""Cached rankings of the nodes for a pod, which are updated with the changes of the cluster."""
