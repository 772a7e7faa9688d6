"""The settings of glibc's allocator."""

from types import SimpleNamespace

import pytest

from webhook.runtime import allocator


def test_kept_memory_is_bounded_by_three_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Source: glibc malloc.h: M_TRIM_THRESHOLD is -1, M_MMAP_THRESHOLD is -3, M_ARENA_MAX is -8."""
    settings: dict[int, int] = {}
    monkeypatch.setattr(allocator, "_LIBRARY", SimpleNamespace(mallopt=settings.__setitem__))

    allocator.bound_kept_memory()

    assert settings == {-1: 33_554_432, -3: 1_048_576, -8: 2}


def test_all_free_memory_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    kept_bytes: list[int] = []
    monkeypatch.setattr(allocator, "_LIBRARY", SimpleNamespace(malloc_trim=kept_bytes.append))

    allocator.give_memory_back()

    assert kept_bytes == [0]


@pytest.mark.parametrize("library", [None, SimpleNamespace()], ids=["no Linux", "musl"])
def test_another_allocator_is_left_as_it_is(monkeypatch: pytest.MonkeyPatch, library: object) -> None:
    monkeypatch.setattr(allocator, "_LIBRARY", library)

    allocator.bound_kept_memory()
    allocator.give_memory_back()
