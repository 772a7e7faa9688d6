"""The PlacementPolicy document: models, built-in default, loader and revision."""
