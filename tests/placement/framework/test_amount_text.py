"""Amounts as a person writes them."""

import pytest

from webhook.placement.framework.amount_text import amount_text

_GI = 2**30


@pytest.mark.parametrize(
    ("resource", "amount", "text"),
    [
        ("cpu", 2000, "2"),
        ("cpu", 2345, "2345m"),
        ("cpu", 23456, "23456m"),
        ("cpu", 99, "99m"),
        ("memory", 512 * _GI, "512Gi"),
        ("memory", 512 * _GI + 1, f"{512 * _GI + 1}"),
        ("ephemeral-storage", 9 * _GI + 1, f"{9 * _GI + 1}"),
        ("hugepages-2Mi", 4 * 2**20, "4Mi"),
        ("memory", 2048 * _GI, "2Ti"),
        ("memory", 10_240 * _GI + 1, f"{10_240 * _GI + 1}"),
        ("memory", 2**20 + 2**10, "1025Ki"),
        ("memory", 10 * 2**10 + 1, f"{10 * 2**10 + 1}"),
        ("memory", 0, "0"),
        ("nvidia.com/gpu", 1024, "1024"),
    ],
)
def test_amounts(resource: str, amount: int, text: str) -> None:
    assert amount_text(resource, amount) == text
