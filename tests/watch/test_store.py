"""The objects of one kind by name."""

import asyncio
from typing import Any

from webhook.watch.store import ObjectsByName, changed_within


def named(name: str, **fields: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, **fields}


def test_a_list_replaces_the_objects_once_it_is_complete() -> None:
    store = ObjectsByName()
    store.replace({"old": named("old")})
    store.listing("").add([named("a")])
    store.add([named("b")])

    assert store.by_name == {"old": named("old")}
    store.finish()
    assert store.by_name == {"a": named("a"), "b": named("b")}


def test_a_list_that_breaks_off_leaves_nothing_for_the_next_one() -> None:
    store = ObjectsByName()
    store.listing("").add([named("gone")])
    store.listing("").add([named("a")])
    store.finish()

    assert store.by_name == {"a": named("a")}


def test_events_change_the_objects() -> None:
    store = ObjectsByName()
    store.replace({})
    store.apply("", "ADDED", named("a"))
    store.apply("", "MODIFIED", named("a", spec=1))
    store.apply("", "DELETED", named("other"))

    assert store.by_name == {"a": named("a", spec=1)}
    store.apply("", "DELETED", named("a"))
    assert store.by_name == {}


def test_each_change_is_signalled_and_being_unknown_once() -> None:
    store = ObjectsByName()
    store.mark_unknown("")
    assert (store.by_name, store.is_unknown, store.changed.is_set()) == (None, True, True)

    store.changed.clear()
    store.mark_unknown("")
    assert not store.changed.is_set()

    store.replace({})
    assert (store.is_unknown, store.changed.is_set()) == (False, True)


def test_a_wait_ends_with_the_change_or_with_its_time() -> None:
    async def run() -> None:
        changed = asyncio.Event()
        await changed_within(changed, 0)
        assert not changed.is_set()
        changed.set()
        await changed_within(changed, 3600)

    asyncio.run(run())
