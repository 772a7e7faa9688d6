"""The documents are true: commands run, names exist, links lead somewhere."""
