"""The configuration of Volcano's scheduler: the actions of its cycle."""

from collections.abc import Mapping
from typing import Any

from webhook.documents.documents import field, parse
from webhook.documents.field import InvalidInput
from webhook.kube.names import VOLCANO_CONFIGURATION, VOLCANO_NAMESPACE

_FILE = "volcano-scheduler.conf"
# The file has no aliases.
_MOST_ALIASED = 1000


def volcano_actions(content: Mapping[str, Any]) -> frozenset[str] | None:
    """Return the names of the actions in `content`, a raw ConfigMap of v1, or None if it does not contain them.

    Source: volcano.sh/volcano/pkg/scheduler/util.go, UnmarshalSchedulerConf
    """
    place = field(content, "metadata", "namespace"), field(content, "metadata", "name")
    if content.get("kind") != "ConfigMap" or place != (VOLCANO_NAMESPACE, VOLCANO_CONFIGURATION):
        return None
    text = field(content, "data", _FILE)
    try:
        found = parse(text, _FILE, _MOST_ALIASED) if isinstance(text, str) else []
    except InvalidInput:
        return None
    actions = field(found[0].content, "actions") if len(found) == 1 else None
    names = actions.split(",") if isinstance(actions, str) else ()
    return frozenset(each.strip() for each in names if each.strip()) or None
