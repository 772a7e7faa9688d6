"""Semantic versions and their order."""

from itertools import pairwise

import pytest

from webhook.kube.cel.semver import Semver, is_semver

# As on semver.org.
_RISING = (
    "0.9.9",
    "1.0.0-alpha",
    "1.0.0-alpha.1",
    "1.0.0-alpha.beta",
    "1.0.0-beta",
    "1.0.0-beta.2",
    "1.0.0-beta.11",
    "1.0.0-rc.1",
    "1.0.0",
    "1.2.0",
    "1.10.0",
)


@pytest.mark.parametrize(("lower", "higher"), list(pairwise(_RISING)))
def test_order_of_versions(lower: str, higher: str) -> None:
    assert Semver(lower) < Semver(higher)
    assert not Semver(higher) < Semver(lower)


def test_build_metadata_makes_no_difference() -> None:
    assert Semver("1.0.0+a") == Semver("1.0.0+b")
    assert hash(Semver("1.0.0+a")) == hash(Semver("1.0.0"))


@pytest.mark.parametrize(
    "text", ["", "1", "1.2", "v1.2.3", "1.2.03", "1.2.3-", "1.2.3-01", "1.2.3 ", "1.2.-3", 3, None]
)
def test_what_is_no_version(text: object) -> None:
    assert not is_semver(text)
