"""The inputs of commands: manifests, clusters, policies, profiles and pending pods."""
