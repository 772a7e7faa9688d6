"""Who makes room for a pod."""
