"""Count further pods, empty nodes and make room: what capacity a cluster has left."""
