"""The scheduler profiles of `check`: built in, or of a KubeSchedulerConfiguration file."""

from collections.abc import Mapping, Sequence
from typing import Any

from webhook.cli.files import STANDARD_INPUT, read_text
from webhook.cluster.snapshot import Snapshot
from webhook.kube.documents import field
from webhook.kube.field import InvalidInput, unsupported
from webhook.kube.wellknown import DEFAULT_SCHEDULER
from webhook.placement.config.loader import parse_profiles
from webhook.placement.diagnosis import NodeToStatus
from webhook.placement.profile import PROFILES, Profile
from webhook.placement.scheduler import Placement, PodSignature, Scheduler, never
from webhook.placement.templates import TemplateNode

_SUGGESTIONS = 3


class Schedulers:
    """A framework for each profile. A pod is asked of the chosen one, else of the one that its schedulerName names."""

    def __init__(
        self, profiles: Mapping[str, Profile], chosen: str | None, templates: Sequence[TemplateNode] = ()
    ) -> None:
        self._frameworks = {
            name: Scheduler(profile, templates=templates, suggestions=_SUGGESTIONS)
            for name, profile in profiles.items()
        }
        self._chosen = chosen

    def place(self, pod: Mapping[str, Any], snapshot: Snapshot) -> Placement:
        """Where the pod would go.

        Raises:
            InvalidInput: a field of the pod that is read is malformed; holds every error.
        """
        question = PodSignature.of(pod)
        name = self._name_for(pod)
        framework = self._frameworks.get(name)
        if framework is None:
            return Placement.unknown(f"the configuration has no profile for the schedulerName {name}")
        return framework.answer(question, snapshot, never)

    def explain(self, pod: Mapping[str, Any], snapshot: Snapshot) -> NodeToStatus:
        """Why each node that cannot take the pod cannot; nothing where no profile is the pod's."""
        framework = self._frameworks.get(self._name_for(pod))
        return framework.explain(PodSignature.of(pod), snapshot) if framework else {}

    def _name_for(self, pod: Mapping[str, Any]) -> str:
        name: str = self._chosen or field(pod, "spec", "schedulerName") or DEFAULT_SCHEDULER
        return name


def read_schedulers(configuration: str | None, name: str | None, templates: Sequence[TemplateNode] = ()) -> Schedulers:
    """The profiles of the KubeSchedulerConfiguration file, or the built-in ones; `name` chooses one for every pod.

    `templates` are the nodes that an autoscaler can add.

    Raises:
        InvalidInput: the file cannot be read or is not one valid KubeSchedulerConfiguration, or there is no such
            profile.
    """
    profiles: Mapping[str, Profile] = PROFILES
    if configuration is None:
        name = name or "default"
    else:
        place = "<stdin>" if configuration == STANDARD_INPUT else configuration
        profiles = parse_profiles(read_text(configuration, "--scheduler-config"), place)
    if name is not None and name not in profiles:
        raise InvalidInput([unsupported("--scheduler-profile", name, profiles)])
    return Schedulers(profiles, name, templates)
