"""Indexes over nodes and running pods: labels, images, selectors and pod affinity terms."""
