"""What commands read: manifests, clusters, policies, profiles and pending pods."""
