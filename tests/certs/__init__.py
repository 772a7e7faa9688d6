"""Certificates: issued, planned, kept, registered."""
