"""Which cards are held and not used: one module for each kind of holder."""
