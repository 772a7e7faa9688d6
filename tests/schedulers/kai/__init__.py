"""The real KAI."""
