"""The commands. Each is a module or package with the name of the command."""
