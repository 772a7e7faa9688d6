"""Operations in a cluster for the commands and the controller: read and write objects, probe the server, register."""
