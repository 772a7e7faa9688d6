"""Fields of a pod."""
