"""The KubeSchedulerConfiguration document. Fields that do not affect placement are parsed and ignored.

Source: k8s.io/kube-scheduler/config/v1/types.go
"""

from typing import Annotated, Any, Literal

from pydantic import Field

from webhook.placement.profiles.plugin_args import Percentage, within
from webhook.policy.spec.field_types import Items, LabelKey, StrictModel


class PluginEntry(StrictModel):
    """A plugin's name, and the weight of its scores. 0 means the default weight."""

    name: str
    weight: Annotated[int, within(0, 2**31 - 1)] | None = None


class PluginSet(StrictModel):
    """The plugins that are enabled and disabled at an extension point. `*` means all plugins."""

    enabled: Items[PluginEntry] = ()
    disabled: Items[PluginEntry] = ()


class Plugins(StrictModel):
    """The plugins by extension point; `multiPoint` applies to all points."""

    multi_point: PluginSet = PluginSet()
    pre_enqueue: PluginSet = PluginSet()
    queue_sort: PluginSet = PluginSet()
    pre_filter: PluginSet = PluginSet()
    filter: PluginSet = PluginSet()
    post_filter: PluginSet = PluginSet()
    pre_score: PluginSet = PluginSet()
    score: PluginSet = PluginSet()
    reserve: PluginSet = PluginSet()
    permit: PluginSet = PluginSet()
    pre_bind: PluginSet = PluginSet()
    bind: PluginSet = PluginSet()
    post_bind: PluginSet = PluginSet()
    placement_generate: PluginSet = PluginSet()
    placement_score: PluginSet = PluginSet()
    pod_group_post_filter: PluginSet = PluginSet()


class PluginConfig(StrictModel):
    """The args of one plugin, which depend on its name."""

    name: str
    args: dict[str, Any] = Field(default={})


class KubeSchedulerProfile(StrictModel):
    """One profile. Pods choose it by its scheduler name."""

    scheduler_name: str | None = None
    percentage_of_nodes_to_score: Percentage | None = None
    plugins: Plugins = Plugins()
    plugin_config: Items[PluginConfig] = ()


class ManagedResource(StrictModel):
    """An extended resource that an extender manages."""

    name: LabelKey
    ignored_by_scheduler: bool = False


class Extender(StrictModel):
    """A webhook that kube-scheduler calls in addition to its plugins."""

    url_prefix: str = ""
    filter_verb: str = ""
    preempt_verb: str = ""
    prioritize_verb: str = ""
    weight: int = 0
    bind_verb: str = ""
    enable_https: Annotated[bool, Field(alias="enableHTTPS")] = False
    tls_config: Annotated[dict[str, Any], Field(alias="tlsConfig")] = Field(default={})
    http_timeout: str = ""
    node_cache_capable: bool = False
    managed_resources: Items[ManagedResource] = ()
    ignorable: bool = False


class KubeSchedulerConfiguration(StrictModel):
    """A KubeSchedulerConfiguration file."""

    api_version: Literal["kubescheduler.config.k8s.io/v1"]
    kind: Literal["KubeSchedulerConfiguration"]
    parallelism: int = 16
    leader_election: dict[str, Any] = Field(default={})
    client_connection: dict[str, Any] = Field(default={})
    enable_profiling: bool = True
    enable_contention_profiling: bool = True
    percentage_of_nodes_to_score: Percentage | None = None
    pod_initial_backoff_seconds: int = 1
    pod_max_backoff_seconds: int = 10
    profiles: Items[KubeSchedulerProfile] = ()
    extenders: Items[Extender] = ()
    delay_cache_until_active: bool = False
