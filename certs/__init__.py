"""Certificates of the webhook: a CA, a server certificate, and their registration in a cluster."""
