"""The sources and the output of the command `audit`."""
