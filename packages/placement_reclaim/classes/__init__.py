"""Find cards that are held and not used. There is one module for each kind of holder."""
