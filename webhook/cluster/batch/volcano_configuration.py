"""The configuration of Volcano's scheduler: the actions of its cycle, and its plugins."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from webhook.documents.documents import JsonObject, field
from webhook.documents.parts import file_in, listed
from webhook.kube.names import VOLCANO_CONFIGURATION, VOLCANO_NAMESPACE

_FILE = "volcano-scheduler.conf"


class VolcanoConfiguration(NamedTuple):
    """The names of the actions and plugins of Volcano's scheduler. None means not known."""

    actions: frozenset[str] | None = None
    plugins: frozenset[str] | None = None

    @classmethod
    def of(cls, content: Mapping[str, Any]) -> "VolcanoConfiguration | None":
        """Return the configuration in `content`, a raw object of v1, or None if it is another object or has none."""
        found = cls(volcano_actions(content), volcano_plugins(content))
        return None if found == (None, None) else found


def volcano_actions(content: Mapping[str, Any]) -> frozenset[str] | None:
    """Return the names of the actions in `content`, a raw ConfigMap of v1, or None if it does not contain them.

    Source: volcano.sh/volcano/pkg/scheduler/util.go, UnmarshalSchedulerConf
    """
    found = _configuration(content)
    actions = field(found, "actions")
    names = actions.split(",") if isinstance(actions, str) else ()
    return frozenset(each.strip() for each in names if each.strip()) or None


def volcano_plugins(content: Mapping[str, Any]) -> frozenset[str] | None:
    """Return the names of the plugins in `content`, a raw ConfigMap of v1, or None if it does not contain them.

    Source: volcano.sh/volcano/pkg/scheduler/conf/scheduler_conf.go
    """
    tiers = listed(_configuration(content), "tiers")
    return frozenset(str(each.get("name")) for tier in tiers for each in listed(tier, "plugins")) or None


def _configuration(content: Mapping[str, Any]) -> JsonObject:
    place = field(content, "metadata", "namespace"), field(content, "metadata", "name")
    if content.get("kind") != "ConfigMap" or place != (VOLCANO_NAMESPACE, VOLCANO_CONFIGURATION):
        return {}
    return file_in(content, _FILE)
