"""The server, without and with a socket."""
