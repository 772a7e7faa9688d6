"""What a pod asks for by its annotations."""
