"""The waiting pods, and the room that is reserved for them."""
