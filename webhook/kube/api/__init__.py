"""What is exchanged with an API server or a scheduler."""
