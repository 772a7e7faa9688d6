"""The fields of a PlacementPolicy."""
