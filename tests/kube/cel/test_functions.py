"""Functions of CEL on long input."""

from tests.kube.cel.device_selectors import holds
from webhook.kube.cel import expression, functions


def test_caches_are_bounded_by_the_length_of_user_input() -> None:
    caches = (expression._short, expression._long, functions._compiled)

    def misses() -> list[int]:
        return [cache.cache_info().misses for cache in caches]

    before = misses()
    assert holds("true " + " " * 20_000) is None
    assert misses() == before
    assert holds(f'"{"a" * 64}".matches("{"a" * 1000}")') is False
    assert misses() == [before[0], before[1] + 1, before[2] + 1]
    assert holds('"a".matches("^a[b]*$")') is True
    assert misses() == [before[0] + 1, before[1] + 1, before[2] + 2]
