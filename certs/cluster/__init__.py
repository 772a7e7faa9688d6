"""The work of commands and controller in a cluster: read and write objects, probe the server, register, report."""
