"""Describe the certificates of one installation: those of the Secret, and those that API servers trust. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.types import CertificatePublicKeyTypes

from certs import pem
from certs.chain import unfit_to_issue
from certs.inspection import Artifacts, Inspection, inspect
from certs.names import ServerNames
from certs.pki import BACKDATE, CA_VALIDITY, SERVER_VALIDITY, IssuerKey
from webhook.kube.field import InvalidInput

Certificates = tuple[x509.Certificate, ...]

MOST_CAS = 16
"""The most CAs in the Secret and in a caBundle: etcd bounds both objects, and each rotation adds one."""


class Request(StrEnum):
    """The rotations that `certs rotate` requests."""

    SERVING = "serving"
    CA = "ca"


@dataclass(frozen=True, slots=True)
class Rules:
    """The settings of the certificate life.

    `trust_wait`: API servers read a changed caBundle within this time. `propagation_wait`: every replica serves the
    pair of the Secret, or none that it can reload, after this time.
    """

    names: ServerNames
    ca_validity: timedelta = CA_VALIDITY
    server_validity: timedelta = SERVER_VALIDITY
    trust_wait: timedelta = timedelta(seconds=15)
    propagation_wait: timedelta = timedelta(minutes=15)


@dataclass(frozen=True, slots=True)
class Observed:
    """The Secret and the webhook configurations, as read from the API server.

    `artifacts` is the content of the Secret, empty if there is none. `bundles` has the readable certificates of the
    caBundle of each webhook. `trusted_for` is the time for which every caBundle has had a CA, without interruption;
    a CA that one lacks is not in it. `unchanged_for` is the time since the last change of the Secret.
    """

    artifacts: Artifacts
    bundles: tuple[Certificates, ...] = ()
    trusted_for: Mapping[x509.Certificate, timedelta] | None = None
    unchanged_for: timedelta = timedelta(0)
    requested: Request | None = None


@dataclass(frozen=True, slots=True)
class Ring:
    """The usable content of a Secret.

    `cas` are those of ca.crt that have not expired. `signer` is the one of them whose key is in ca.key. `issuer` is the
    one that issued the certificate in tls.crt, None unless an API server would trust that certificate and the key of
    tls.key is its own.
    """

    cas: Certificates
    signer: x509.Certificate | None
    issuer: x509.Certificate | None
    pair: Inspection


def read_ring(artifacts: Artifacts, now: datetime) -> Ring:
    """Return the usable content of `artifacts` at `now`."""
    cas = unexpired(pem.readable_certificates(artifacts.ca_certificate or b""), now)
    pair = inspect(replace(artifacts, ca_certificate=pem.encode(*cas) or None), now)
    issuer = None if pair.serving_errors() else pair.ca
    return Ring(cas, _signer(cas, artifacts.ca_key or b"", now), issuer, pair)


def _signer(cas: Certificates, key_pem: bytes, now: datetime) -> x509.Certificate | None:
    try:
        key = pem.private_key(key_pem, "ca.key")
    except InvalidInput:
        return None
    if not isinstance(key, IssuerKey):
        return None
    public = key.public_key()
    return next((ca for ca in cas if _public_key(ca) == public and unfit_to_issue(ca, now) is None), None)


def _public_key(certificate: x509.Certificate) -> CertificatePublicKeyTypes | None:
    try:
        return certificate.public_key()
    except (ValueError, UnsupportedAlgorithm):  # a CA of another tool
        return None


def unexpired(certificates: list[x509.Certificate] | Certificates, now: datetime) -> Certificates:
    """Return the certificates that have not expired, each once, in their order."""
    return tuple(dict.fromkeys(each for each in certificates if now < each.not_valid_after_utc))


def due_at(certificate: x509.Certificate) -> datetime:
    """Return the time when a third of the certificate's lifetime is left; the backdated part does not count.

    Source: https://cert-manager.io/docs/usage/certificate/#issuance-triggers
    """
    end = certificate.not_valid_after_utc
    lifetime = end - certificate.not_valid_before_utc
    return end - max(lifetime - BACKDATE, timedelta(0)) / 3


def newest(certificates: Certificates, first: Certificates = ()) -> Certificates:
    """Return `first`, then the others of `certificates` up to `MOST_CAS` in total, of the latest start of validity."""
    others = [each for each in dict.fromkeys(certificates) if each not in first]
    room = max(MOST_CAS - len(first), 0)
    kept = set(sorted(others, key=lambda each: each.not_valid_before_utc, reverse=True)[:room])
    return (*first, *(each for each in others if each in kept))
