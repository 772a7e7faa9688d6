"""docs/scorer.md tells of every default plugin how far it is followed, and what a view can hold."""

from tests.docs.markdown import ROOT, rows, span_of
from webhook.cluster.cache.resources import FURTHER_RESOURCES
from webhook.placement.config.extension_points import DEFAULT_PLUGINS

_PAGE = ROOT / "docs" / "scorer.md"


def test_every_default_plugin_is_told_in_kube_schedulers_order() -> None:
    assert [span_of(row[0]) for row in rows(_PAGE, "Plugins")] == [plugin.name for plugin in DEFAULT_PLUGINS]


def test_every_further_kind_of_a_view_is_told() -> None:
    told = [
        kind for row in rows(_PAGE, "What a view of the cluster holds") for kind in (span_of(row[0]) or "").split(",")
    ]

    assert sorted(told) == sorted(resource.plural for resource in FURTHER_RESOURCES)
