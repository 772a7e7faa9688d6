"""What commands and the controller do in a cluster: read and write the objects, probe the server, register, report."""
