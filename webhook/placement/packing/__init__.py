"""Fragmentation of cards: the typical pods of a cluster, and the cards that they cannot use."""
