"""What a version is published as: how it is made, and that each part works; the workflows that publish it."""
