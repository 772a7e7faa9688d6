"""What the API server adds to a pod, and what it refuses."""
