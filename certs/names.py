"""The DNS names and IP addresses that a server certificate is valid for."""

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass

from cryptography import x509

from webhook.documents.field import FieldError, InvalidInput, invalid, required
from webhook.kube.names import is_dns_label

IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address

# Source: k8s.io/apimachinery/pkg/util/validation/validation.go IsDNS1123Subdomain, IsWildcardDNS1123Subdomain
_DNS_NAME_MAX_LENGTH = 253


@dataclass(frozen=True, slots=True)
class ServerNames:
    """Subject alternative names, in lower case and in the given order, without duplicates."""

    dns_names: tuple[str, ...]
    ip_addresses: tuple[IPAddress, ...]

    def __str__(self) -> str:
        return ", ".join([*self.dns_names, *map(str, self.ip_addresses)])

    def includes(self, other: "ServerNames") -> bool:
        """Return whether all names of `other` are among these."""
        return set(other.dns_names) <= set(self.dns_names) and set(other.ip_addresses) <= set(self.ip_addresses)

    def covers(self, host: str) -> bool:
        """Return whether a TLS client that connects to `host`, a name or an address, accepts these names."""
        try:
            return ipaddress.ip_address(host) in self.ip_addresses
        except ValueError:
            _, _, parent = host.lower().partition(".")
            return host.lower() in self.dns_names or f"*.{parent}" in self.dns_names


def server_names(
    dns_names: Iterable[str],
    ip_addresses: Iterable[str] = (),
    *,
    dns_path: str = "dnsNames",
    ip_path: str = "ipAddresses",
) -> ServerNames:
    """Return the validated names. Errors refer to the two lists by `dns_path` and `ip_path`: a field or a flag.

    Raises:
        InvalidInput: names or addresses are invalid (lists all of them), or there are none.
    """
    errors: list[FieldError] = []
    names: dict[str, None] = {}
    addresses: dict[IPAddress, None] = {}
    for name in dns_names:
        fault = _dns_fault(name.lower())
        if fault:
            errors.append(invalid(dns_path, name, fault))
        names[name.lower()] = None
    for text in ip_addresses:
        try:
            addresses[ipaddress.ip_address(text)] = None
        except ValueError:
            errors.append(invalid(ip_path, text, "must be an IPv4 or IPv6 address, as 10.0.0.1 or fd00::1"))
    if not names and not addresses:
        errors.append(required(dns_path, "a server certificate needs a DNS name or an IP address"))
    if errors:
        raise InvalidInput(errors)
    return ServerNames(tuple(names), tuple(addresses))


def names_of(certificate: x509.Certificate) -> ServerNames:
    """Return the subject alternative names of `certificate`, or none if it has none."""
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return ServerNames((), ())
    addresses = (value for value in names.get_values_for_type(x509.IPAddress) if isinstance(value, IPAddress))
    return ServerNames(tuple(names.get_values_for_type(x509.DNSName)), tuple(addresses))


def _dns_fault(name: str) -> str | None:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        pass
    else:
        return "is an IP address; give it as such, not as a DNS name"
    if len(name) > _DNS_NAME_MAX_LENGTH or not all(map(is_dns_label, name.removeprefix("*.").split("."))):
        return (
            "must be a DNS name: labels of a-z, 0-9 and '-' (63 characters at most, a letter or digit at either end), "
            "joined by '.', 253 characters at most; the first may be '*'"
        )
    return None


def service_names(service: str, namespace: str) -> tuple[str, ...]:
    """Return the DNS names of a Service. The API server verifies `SERVICE.NAMESPACE.svc`.

    Source: k8s.io/apiserver/pkg/util/webhook/client.go HookClient
    """
    return (
        f"{service}.{namespace}.svc",
        f"{service}.{namespace}.svc.cluster.local",
        f"{service}.{namespace}",
        service,
    )
