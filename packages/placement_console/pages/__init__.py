"""The endpoints of each page of the console."""
