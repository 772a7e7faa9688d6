"""The pods that wait, and the room that is reserved for them."""
