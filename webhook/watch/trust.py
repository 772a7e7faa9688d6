"""TLS contexts that trust the same certificates as clients in Go, such as kubectl and API servers."""

import ssl


def trusting_as_go(context: ssl.SSLContext) -> ssl.SSLContext:
    """Change the context of a client so that it trusts the certificates that Go trusts, and return it.

    Chain and name are still verified.

    From 3.13 on, Python rejects a CA without keyUsage, as created by `openssl req -x509`, and a certificate without key
    identifiers, as created by EKS. Before 3.13, it rejects an intermediate CA that is trusted without its root. Go
    accepts all of these, and never reads the common name.

    Source: crypto/x509/verify.go, Certificate.Verify; https://docs.python.org/3/whatsnew/3.13.html#ssl
    """
    context.verify_flags = (context.verify_flags | ssl.VERIFY_X509_PARTIAL_CHAIN) & ~ssl.VERIFY_X509_STRICT
    context.hostname_checks_common_name = False
    return context
