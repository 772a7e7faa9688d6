"""The PlacementPolicy document."""
