"""What is compared with the cluster: predictions, missed pods and free cards."""
