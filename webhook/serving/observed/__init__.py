"""Comparisons with the cluster: predictions, missed pods and free cards."""
