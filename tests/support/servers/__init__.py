"""Servers on loopback that tests talk to: fakes of others, and our own."""
