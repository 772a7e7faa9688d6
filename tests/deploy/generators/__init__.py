"""Write parts of deploy/ from what the code has."""
