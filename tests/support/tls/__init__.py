"""Certificates, and the installations that keep them."""
