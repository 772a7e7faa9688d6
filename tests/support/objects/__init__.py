"""Builders of Kubernetes objects, as the API has them."""
