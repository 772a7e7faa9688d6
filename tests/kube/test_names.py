"""Names, label keys and label values, at their limits."""

import pytest

from webhook.kube.names import is_dns_subdomain, is_label_value, is_qualified_name

LONG = "a" * 63


@pytest.mark.parametrize("text", ["a", "0", "a-b", "a.b", "1.2.3", "a--b", "maip.mxsf.io", "a" * 253, f"{'a' * 200}.b"])
def test_a_dns_subdomain(text: str) -> None:
    assert is_dns_subdomain(text)


@pytest.mark.parametrize(
    "text", ["", "A", "a_b", "-a", "a-", ".a", "a.", "a..b", "a.-b", "a b", "a/b", "a\n", "é", "a" * 254]
)
def test_no_dns_subdomain(text: str) -> None:
    assert not is_dns_subdomain(text)


@pytest.mark.parametrize("text", ["", "a", "A", "0", "a-b", "a_b", "a.b", "NVIDIA-A100-SXM4-80GB", "a..b", LONG])
def test_a_label_value(text: str) -> None:
    assert is_label_value(text)


@pytest.mark.parametrize("text", [" ", "-", "_a", "a.", "a b", "a/b", "a\n", "é", "١", LONG + "a"])
def test_no_label_value(text: str) -> None:
    assert not is_label_value(text)


@pytest.mark.parametrize("text", ["a", "jobtype", "a.b/C_d", "nvidia.com/gpu.product", LONG, f"{'a' * 253}/{LONG}"])
def test_a_label_key(text: str) -> None:
    assert is_qualified_name(text)


@pytest.mark.parametrize(
    "text", ["", "/", "a/", "/a", "a/b/c", "A/b", "a_b/c", "a/-", "a /b", "a/b\n", LONG + "a", f"{'a' * 254}/b"]
)
def test_no_label_key(text: str) -> None:
    assert not is_qualified_name(text)


@pytest.mark.parametrize(
    "check", [is_dns_subdomain, is_label_value, is_qualified_name], ids=lambda check: check.__name__
)
def test_huge_text_is_rejected_at_once(check: object) -> None:
    assert callable(check)
    assert not check("a-" * 1_000_000)
