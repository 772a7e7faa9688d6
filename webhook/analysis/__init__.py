"""The effect that another policy or scheduler profile would have: replay and simulation."""
