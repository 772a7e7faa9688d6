"""The configuration of Volcano's scheduler: the actions of its cycle, and its plugins."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from webhook.documents.documents import field
from webhook.documents.parts import file_in, listed
from webhook.kube.names import VOLCANO_CONFIGURATION, VOLCANO_NAMESPACE

_FILE = "volcano-scheduler.conf"


class VolcanoConfiguration(NamedTuple):
    """The names of the actions and plugins of Volcano's scheduler. None means not known."""

    actions: frozenset[str] | None = None
    plugins: frozenset[str] | None = None

    @classmethod
    def of(cls, content: Mapping[str, Any]) -> "VolcanoConfiguration | None":
        """Return the configuration in `content`, a raw object of v1, or None if it is another object or has none.

        Source: volcano.sh/volcano/pkg/scheduler/util.go, UnmarshalSchedulerConf;
        volcano.sh/volcano/pkg/scheduler/conf/scheduler_conf.go
        """
        place = field(content, "metadata", "namespace"), field(content, "metadata", "name")
        if content.get("kind") != "ConfigMap" or place != (VOLCANO_NAMESPACE, VOLCANO_CONFIGURATION):
            return None
        read = file_in(content, _FILE)
        actions, tiers = field(read, "actions"), listed(read, "tiers")
        names = actions.split(",") if isinstance(actions, str) else ()
        plugins = frozenset(str(each.get("name")) for tier in tiers for each in listed(tier, "plugins"))
        found = cls(frozenset(each.strip() for each in names if each.strip()) or None, plugins or None)
        return None if found == (None, None) else found
