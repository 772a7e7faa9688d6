"""Random objects, for property tests."""
