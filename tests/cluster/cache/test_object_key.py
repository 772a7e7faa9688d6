"""Keys of cached objects."""

import pytest

from webhook.cluster.cache.object_key import Key, key_of


@pytest.mark.parametrize(
    ("kind", "metadata", "key", "text"),
    [
        ("Node", {"name": "a"}, ("", "a"), "a"),
        ("Pod", {"name": "a"}, ("default", "a"), "default/a"),
        ("Service", {"name": "a", "namespace": "team-a"}, ("team-a", "a"), "team-a/a"),
        ("Service", {"name": 3, "namespace": []}, ("", ""), ""),
        ("Service", "none", ("", ""), ""),
    ],
)
def test_an_object_is_known_by_namespace_and_name(kind: str, metadata: object, key: tuple[str, str], text: str) -> None:
    found = key_of(kind, {"metadata": metadata})

    assert (found, str(found)) == (Key(*key), text)
