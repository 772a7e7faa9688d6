"""What another policy or scheduler profile would do."""
