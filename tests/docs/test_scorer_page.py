"""docs/scorer.md tells of every default plugin how far it is followed."""

from tests.docs.markdown import ROOT, rows, span_of
from webhook.placement.extension_points import DEFAULT_PLUGINS

_PAGE = ROOT / "docs" / "scorer.md"


def test_every_default_plugin_is_told_in_kube_schedulers_order() -> None:
    assert [span_of(row[0]) for row in rows(_PAGE, "Plugins")] == [plugin.name for plugin in DEFAULT_PLUGINS]
