"""The HyperNodes of Volcano, and its objects in a snapshot."""
