"""Write the reference pages from the models."""
