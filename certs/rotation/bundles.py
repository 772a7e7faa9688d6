"""Read and mend the caBundle of webhook configurations. Pure: objects in, objects and patches out."""

from collections.abc import Iterable, Iterator
from typing import Any

from certs import pem, registration
from certs.rotation.state import Certificates

JsonObject = dict[str, Any]


def bundles_of(configurations: Iterable[JsonObject]) -> tuple[Certificates, ...]:
    """Return the readable certificates of the caBundle of each webhook of `configurations`."""
    return tuple(
        tuple(pem.readable_certificates(bundle))
        for configuration in configurations
        for bundle in registration.ca_bundles(configuration)
    )


def mending_patch(
    configuration: JsonObject, wanted: Certificates, added: Iterable[JsonObject] = ()
) -> list[JsonObject]:
    """Return the RFC 6902 operations after which each caBundle has `wanted` and nothing else; none if they have.

    The order does not count, so that two controllers do not change each other's. The webhooks `added` are appended.
    """
    known, missing = tuple(_faults(configuration, wanted)), tuple(added)
    if not any(known) and not missing:
        return []
    return registration.ca_bundle_patch(configuration, pem.encode(*wanted), None, missing)


def _faults(configuration: JsonObject, wanted: Certificates) -> Iterator[bool]:
    for bundle in registration.ca_bundles(configuration):
        found = pem.readable_certificates(bundle)
        # A block that cannot be read makes API servers reject the whole bundle.
        yield set(found) != set(wanted) or pem.encode(*found) != bundle
