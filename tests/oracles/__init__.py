"""A plain placement, which the fast one agrees with on random clusters."""
