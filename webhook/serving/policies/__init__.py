"""The policies in force: the files and objects that are followed, their status and their scorers."""
