"""Objects beside nodes and pods."""
