"""The policies in force: the files and objects that they come from, their status, and their scorers."""
