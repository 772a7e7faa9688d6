"""The messages exchanged with an API server or a scheduler."""
