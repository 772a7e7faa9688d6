"""What another policy or scheduler profile would do: replay and simulation."""
