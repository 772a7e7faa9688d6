"""Amounts as a person writes and rounds them."""

import pytest

from webhook.placement.framework.amount_text import amount_text, rounded_down, rounded_up

_GI = 2**30


@pytest.mark.parametrize(
    ("resource", "amount", "text", "down", "up"),
    [
        ("cpu", 2000, "2", "2", "2"),
        ("cpu", 2345, "2345m", "2300m", "2400m"),
        ("cpu", 23456, "23456m", "23", "24"),
        ("cpu", 99, "99m", "99m", "99m"),
        ("memory", 512 * _GI, "512Gi", "512Gi", "512Gi"),
        ("memory", 512 * _GI + 1, f"{512 * _GI + 1}", "512Gi", "513Gi"),
        ("ephemeral-storage", 9 * _GI + 1, f"{9 * _GI + 1}", "9Gi", "9217Mi"),
        ("hugepages-2Mi", 4 * 2**20, "4Mi", "4Mi", "4Mi"),
        ("memory", 2048 * _GI, "2Ti", "2Ti", "2Ti"),
        ("memory", 10_240 * _GI + 1, f"{10_240 * _GI + 1}", "10Ti", "11Ti"),
        ("memory", 2**20 + 2**10, "1025Ki", "1025Ki", "1025Ki"),
        ("memory", 10 * 2**10 + 1, f"{10 * 2**10 + 1}", "10Ki", "11Ki"),
        ("memory", 0, "0", "0", "0"),
        ("nvidia.com/gpu", 1024, "1024", "1024", "1024"),
    ],
)
def test_amounts(resource: str, amount: int, text: str, down: str, up: str) -> None:
    assert amount_text(resource, amount) == text
    assert amount_text(resource, rounded_down(resource, amount)) == down
    assert amount_text(resource, rounded_up(resource, amount)) == up
