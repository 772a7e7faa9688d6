"""Fragmentation of cards: the pods that are typical of a cluster, and the cards that they can no longer use."""
