"""The command `reclaim`."""
