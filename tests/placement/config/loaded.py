"""Profiles of a KubeSchedulerConfiguration."""

from typing import Any

import yaml

from webhook.placement.config.profile_loader import parse_profiles
from webhook.placement.profiles.profile import Profile


def document(**fields: Any) -> str:
    head = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    return yaml.safe_dump(head | fields)


def profile_of(**fields: Any) -> Profile:
    (profile,) = parse_profiles(document(profiles=[fields]), "s.yaml").values()
    return profile


def names_of(profile: Profile) -> list[str]:
    return [plugin.name for plugin in profile.filters]


def weights_of(profile: Profile) -> dict[str, int]:
    return {plugin.name: weight for plugin, weight in profile.scores}
