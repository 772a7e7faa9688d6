"""Addresses and durations in the notation of flags and the API server."""

from pathlib import Path

import pytest

from webhook.runtime.settings import Address, Settings, parse_address, parse_go_duration


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("0.0.0.0:8443", Address("0.0.0.0", 8443)),
        (":8443", Address("0.0.0.0", 8443)),
        ("localhost:0", Address("localhost", 0)),
        ("127.0.0.1:65535", Address("127.0.0.1", 65535)),
        ("[::1]:8443", Address("::1", 8443)),
        ("[::]:8443", Address("::", 8443)),
        ("webhook.example.com:08443", Address("webhook.example.com", 8443)),
    ],
)
def test_an_address(text: str, wanted: Address) -> None:
    assert parse_address(text) == wanted


@pytest.mark.parametrize(
    "text",
    [
        "",
        "8443",
        "localhost",
        "localhost:",
        ":",
        "localhost:https",
        "localhost:-1",
        "localhost:65536",
        "[::1]",
        "a:٨",
        "a: 8443",
        "a:8_443",
        "a:" + "9" * 5000,
    ],
)
def test_no_address(text: str) -> None:
    with pytest.raises(ValueError, match=r"^must be HOST:PORT, with a port from 0 to 65535$"):
        parse_address(text)


@pytest.mark.parametrize("text", ["127.0.0.1:8443", "[::1]:8443", "localhost:0"])
def test_an_address_is_written_as_it_is_read(text: str) -> None:
    assert str(parse_address(text)) == text


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("10s", 10),
        ("0s", 0),
        ("0", 0),
        ("1m30s", 90),
        ("1h0m0s", 3600),
        ("1h2m3.5s", 3723.5),
        ("500ms", 0.5),
        ("1.5s", 1.5),
        ("100us", 0.0001),
        ("100µs", 0.0001),
        ("7ns", 0),
        ("1700ns", 2e-6),
        ("2m", 120),
        ("1.s", 1),
    ],
)
def test_a_go_duration(text: str, wanted: float) -> None:
    """Source: go.dev/src/time/format.go, Duration.String and ParseDuration"""
    assert parse_go_duration(text) == pytest.approx(wanted)


@pytest.mark.parametrize(
    "text",
    [
        *("", "10", "s", "10 s", "-1s", "+1s", "10sec", "1d", "1w", "1y", "10s ", "1m30", "ms"),
        *("1,5s", "1e3s", "۱s", "1s, 2s", "1.2.3s", f"{10**12}h"),
    ],
)
def test_no_go_duration(text: str) -> None:
    assert parse_go_duration(text) is None


def test_defaults_are_those_of_the_documents() -> None:
    """docs/operations.md has those that a flag sets."""
    assert Settings(Path("tls")) == Settings(
        tls_dir=Path("tls"),
        listen=Address("0.0.0.0", 8443),
        admin_listen=Address("127.0.0.1", 8080),
        max_body_bytes=4_194_304,
        max_bytes_in_flight=16_777_216,
        max_connections=512,
        max_connections_per_address=256,
        read_timeout_seconds=10.0,
        certificate_poll_seconds=1.0,
        shutdown_delay_seconds=0.0,
        grace_seconds=20.0,
        replica="",
        answers_per_connection=1000,
    )
