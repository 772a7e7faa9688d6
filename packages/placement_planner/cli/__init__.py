"""The commands, a module or package each, named as the command."""
