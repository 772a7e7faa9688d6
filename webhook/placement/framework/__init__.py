"""The plugin interface, filtering, and the result of a scheduling cycle."""
