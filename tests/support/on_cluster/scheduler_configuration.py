"""A kube-scheduler with a configuration of a test's own."""

from typing import Any

import yaml

from tests.controlplane.cluster import Cluster
from webhook.placement.config.profile_loader import parse_profiles
from webhook.placement.profiles.profile import Profile

Object = dict[str, Any]


def configuration(*plugin_config: tuple[str, Object], **plugins: Object) -> Object:
    """Return a KubeSchedulerConfiguration of one profile, whose `plugins` are by extension points."""
    profile = {
        "schedulerName": "default-scheduler",
        "plugins": plugins,
        "pluginConfig": [{"name": name, "args": args} for name, args in plugin_config],
    }
    head = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    return {**head, "percentageOfNodesToScore": 100, "podMaxBackoffSeconds": 1, "profiles": [profile]}


def started(cluster: Cluster, configuration: Object) -> Profile:
    """Run the scheduler with the configuration from now on, and return its profile."""
    cluster.control_plane.start_scheduler(configuration)
    (profile,) = parse_profiles(yaml.safe_dump(configuration), "configuration").values()
    return profile
