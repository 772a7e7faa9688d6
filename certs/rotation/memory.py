"""Remember for how long the Secret has been unchanged and each CA trusted. Pure: the time is passed in.

Nothing of it is stored. A controller that starts anew waits for the full times again, which is always safe.
"""

from datetime import timedelta

from cryptography import x509

from certs.rotation.state import Certificates


class Memory:
    """What one controller has seen without interruption; times are monotonic seconds."""

    def __init__(self) -> None:
        self._version = ""
        self._unchanged_since = 0.0
        self._trusted_since: dict[x509.Certificate, float] = {}

    def unchanged_for(self, version: str, now_seconds: float) -> timedelta:
        """Return the time for which the Secret has had this `version`: its uid and resourceVersion.

        Any write counts as a change. A Secret that was replaced and restored meanwhile has the same content, but
        replicas may serve what it held in between.
        """
        if version != self._version:
            self._version, self._unchanged_since = version, now_seconds
        return timedelta(seconds=now_seconds - self._unchanged_since)

    def trusted_for(self, bundles: tuple[Certificates, ...], now_seconds: float) -> dict[x509.Certificate, timedelta]:
        """Return the time for which each CA has been in every one of `bundles`."""
        common = set.intersection(*map(set, bundles)) if bundles else set()
        self._trusted_since = {ca: self._trusted_since.get(ca, now_seconds) for ca in common}
        return {ca: timedelta(seconds=now_seconds - since) for ca, since in self._trusted_since.items()}
