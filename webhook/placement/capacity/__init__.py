"""Capacity: the free cards of each pool and product, and nodes that take pods independently of each other."""
