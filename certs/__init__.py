"""Certificates of the webhook: own CA, server certificate, and what registers them in a cluster."""
