"""docs/scorer.md lists every default plugin, every change between releases and every optional kind of a view."""

from tests.docs.markdown import ROOT, rows, span_of
from webhook.cluster.cache.resources import BATCH_RESOURCES, OPTIONAL_RESOURCES
from webhook.kube.release import Change
from webhook.placement.config.extension_points import DEFAULT_PLUGINS

_PAGE = ROOT / "docs" / "scorer.md"


def test_every_default_plugin_is_listed_in_the_order_of_kube_scheduler() -> None:
    assert [span_of(row[0]) for row in rows(_PAGE, "Plugins")] == [plugin.name for plugin in DEFAULT_PLUGINS]


def test_every_change_between_releases_is_listed() -> None:
    assert [tuple(row) for row in rows(_PAGE, "Releases")] == [(f"1.{each.since}", each.what) for each in Change]


def test_every_optional_kind_of_a_view_is_listed() -> None:
    listed = [
        kind for row in rows(_PAGE, "What a view of the cluster holds") for kind in (span_of(row[0]) or "").split(",")
    ]

    batch = [f"{each.plural}.{each.api_version.partition('/')[0]}" for each in BATCH_RESOURCES]
    assert sorted(listed) == sorted([*(each.plural for each in OPTIONAL_RESOURCES), *batch])
