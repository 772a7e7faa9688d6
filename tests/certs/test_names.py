"""Names of a server certificate: which are valid, and which hosts they cover."""

import pytest

from certs.names import server_names, service_names
from webhook.documents.field import InvalidInput


@pytest.mark.parametrize(
    "name",
    ["localhost", "a.b.svc", "*.example.com", "1.example.com", "x" * 63, "a-b.c", ".".join(["x" * 61] * 4) + ".abcde"],
)
def test_dns_name_is_taken(name: str) -> None:
    assert server_names([name]).dns_names == (name,)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "a_b",
        "-a",
        "a-",
        "a..b",
        "a.",
        ".a",
        "a b",
        "x" * 64,
        ".".join(["x" * 63] * 4),
        "*",
        "a.*.b",
        "**.b",
        "https://a",
        "a:8443",
        "ü.de",
        "a\n",
    ],
)
def test_bad_dns_name_is_refused_with_what_would_do(name: str) -> None:
    with pytest.raises(InvalidInput, match=r"^dnsNames: Invalid value: .*; must be a DNS name: labels of a-z"):
        server_names([name])


@pytest.mark.parametrize("address", ["10.0.0.1", "::1"])
def test_address_among_dns_names_is_refused_as_such(address: str) -> None:
    with pytest.raises(InvalidInput, match="is an IP address"):
        server_names([address])


@pytest.mark.parametrize("address", ["", "localhost", "10.0.0", "10.0.0.256", "[::1]", "10.0.0.1/8"])
def test_bad_address_is_refused(address: str) -> None:
    with pytest.raises(InvalidInput, match=r"ipAddresses: Invalid value: .* must be an IPv4 or IPv6 address"):
        server_names([], [address])


def test_all_errors_are_reported_at_once() -> None:
    with pytest.raises(InvalidInput) as refused:
        server_names(["a_b", "ok", "c_d"], ["x"], dns_path="--dns", ip_path="--ip")
    assert [error.path for error in refused.value.errors] == ["--dns", "--dns", "--ip"]


def test_certificate_without_names_is_rejected() -> None:
    with pytest.raises(InvalidInput, match="needs a DNS name or an IP address"):
        server_names([])


@pytest.mark.parametrize(
    ("host", "covered"),
    [
        ("a.b.svc", True),
        ("A.B.svc", True),
        ("b.svc", False),
        ("x.example.com", True),
        ("x.y.example.com", False),
        ("example.com", False),
        ("10.0.0.1", True),
        ("10.0.0.2", False),
        ("FD00::0:1", True),
    ],
)
def test_names_cover_the_hosts_that_a_tls_client_accepts(host: str, covered: bool) -> None:
    assert server_names(["a.b.svc", "*.example.com"], ["10.0.0.1", "fd00::1"]).covers(host) is covered


def test_service_names_begin_with_the_one_the_api_server_asks_for() -> None:
    assert service_names("web", "team") == ("web.team.svc", "web.team.svc.cluster.local", "web.team", "web")
