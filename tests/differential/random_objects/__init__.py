"""Random clusters and pods."""
