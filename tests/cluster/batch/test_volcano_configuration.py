"""The actions of Volcano's scheduler, by its ConfigMap."""

from typing import Any

import pytest

from tests.support.objects.batch_objects import volcano_configuration
from webhook.cluster.batch.volcano_configuration import VolcanoConfiguration


@pytest.mark.parametrize(
    ("text", "actions"),
    [
        pytest.param('actions: "enqueue, allocate, backfill"\n', {"enqueue", "allocate", "backfill"}, id="the chart's"),
        pytest.param("actions: allocate,preempt,\ntiers: []\n", {"allocate", "preempt"}, id="without blanks"),
        pytest.param('actions: ""\n', None, id="empty"),
        pytest.param("actions: [allocate]\n", None, id="no text"),
        pytest.param("tiers: []\n", None, id="none"),
        pytest.param("{", None, id="no YAML"),
        pytest.param(None, None, id="no file"),
    ],
)
def test_actions_are_those_of_the_file(text: object, actions: set[str] | None) -> None:
    expected = None if actions is None else VolcanoConfiguration(frozenset(actions))

    assert VolcanoConfiguration.of(volcano_configuration(text)) == expected


@pytest.mark.parametrize(
    "changed",
    [
        {"kind": "Secret"},
        {"metadata": {"name": "volcano-scheduler-configmap", "namespace": "team-a"}},
        {"metadata": {"name": "volcano-controller-configmap", "namespace": "volcano-system"}},
        {"metadata": None},
    ],
)
def test_other_objects_have_none(changed: dict[str, Any]) -> None:
    assert VolcanoConfiguration.of(volcano_configuration("actions: allocate\n") | changed) is None
