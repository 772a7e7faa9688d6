"""The manifests of examples/ and what the webhook makes of them."""
