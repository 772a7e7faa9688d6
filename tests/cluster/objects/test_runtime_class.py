"""RuntimeClasses: overhead, node selector and tolerations."""

import pytest

from webhook.cluster.objects.runtime_class import RuntimeClass
from webhook.documents.field import InvalidInput


def test_a_class_has_what_its_pods_get() -> None:
    toleration = {"key": "kata", "operator": "Exists"}
    found = RuntimeClass.of(
        {
            "metadata": {"name": "kata"},
            "overhead": {"podFixed": {"cpu": "250m"}},
            "scheduling": {"nodeSelector": {"kata": "true"}, "tolerations": [toleration]},
        }
    )

    assert found == ("kata", {"cpu": "250m"}, {"kata": "true"}, (toleration,))


def test_a_class_without_an_overhead_differs_from_one_with_an_empty_overhead() -> None:
    assert RuntimeClass.of({"metadata": {"name": "runc"}}).overhead is None
    assert RuntimeClass.of({"metadata": {"name": "runc"}, "overhead": {}}).overhead == {}


def test_a_malformed_toleration_is_named() -> None:
    with pytest.raises(InvalidInput, match=r"scheduling\.tolerations\[0\]\.key"):
        RuntimeClass.of({"metadata": {"name": "kata"}, "scheduling": {"tolerations": [{"key": 3}]}})
