"""The manifests of deploy/ and the image."""
