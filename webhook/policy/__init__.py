"""The PlacementPolicy document: its models, its built-in default, how it is read and named."""
