"""The time that a certificate has left. Pure."""

from datetime import datetime, timedelta

from cryptography import x509

_LONGEST = timedelta(days=30)
# Issuers renew when a third of the validity is left, or earlier.
_PART = 6


def expires_soon(certificate: x509.Certificate, now: datetime) -> bool:
    """Return whether less than 30 days or a sixth of the validity is left: its renewal is late."""
    end = certificate.not_valid_after_utc
    return end - now < min(_LONGEST, (end - certificate.not_valid_before_utc) / _PART)
