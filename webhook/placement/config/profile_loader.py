"""Load a KubeSchedulerConfiguration into profiles as kube-scheduler does, and report all errors at once."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from pydantic import ValidationError

from webhook.cluster.index.node_selector import NodeAffinityTerms, read_node_affinity
from webhook.documents.documents import parse
from webhook.documents.field import FieldError, InvalidInput, invalid, required
from webhook.kube.names import DEFAULT_SCHEDULER
from webhook.kube.pod.amounts import CPU, MEMORY
from webhook.kube.reader import Reader
from webhook.placement.config.extension_points import Expansion, expand, plugin_errors
from webhook.placement.config.scheduler_configuration import (
    Extender,
    KubeSchedulerConfiguration,
    KubeSchedulerProfile,
    Plugins,
)
from webhook.placement.framework.scoring import UtilizationScore
from webhook.placement.plugins.node_resources_fit import (
    ScoringStrategy,
    least_requested_score,
    most_requested_score,
)
from webhook.placement.pod.inter_pod_info import SpreadConstraint
from webhook.placement.profiles.plugin_args import (
    Args,
    DefaultConstraint,
    DefaultPreemptionArgs,
    InterPodAffinityArgs,
    NodeAffinityArgs,
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
    PodTopologySpreadArgs,
    ScoringStrategyArgs,
    UtilizationShapePoint,
    VolumeBindingArgs,
)
from webhook.placement.profiles.plugin_registry import GANG_SCHEDULING, PLUGIN_BY_NAME, PluginArgs
from webhook.placement.profiles.profile import Enabled, Profile, UnmodelledStep
from webhook.policy.loader import field_error
from webhook.policy.spec.field_types import StrictModel

_UNKNOWN_FIELD = "unknown field; kube-scheduler 1.37 refuses it"
_MAX_NODE_SCORE_PER_POINT = 10

M = TypeVar("M", bound=StrictModel)


def parse_profiles(text: str | bytes, place: str) -> Mapping[str, Profile]:
    """Return the profiles in `text` by scheduler name, in order. `place` is the prefix of the paths of errors.

    Raises:
        InvalidInput: the text is not one valid KubeSchedulerConfiguration; holds every error found.

    Source: k8s.io/kubernetes/pkg/scheduler/apis/config/validation/validation.go, ValidateKubeSchedulerConfiguration
    """
    documents = parse(text, place)
    if len(documents) != 1:
        detail = f"must hold one KubeSchedulerConfiguration, holds {len(documents)} documents"
        raise InvalidInput([FieldError(place, "Invalid value", f"{len(documents)} documents", detail)])
    errors: list[FieldError] = []
    configuration = _read(KubeSchedulerConfiguration, documents[0].content, "", errors)
    profiles = {} if configuration is None else _profiles(configuration, errors)
    if errors:
        raise InvalidInput(error.prefixed(documents[0].place) for error in errors)
    return profiles


def _read(model: type[M], content: Any, path: str, errors: list[FieldError]) -> M | None:
    """Return `content` as `model`, or add to `errors` and return None. A null counts as an absent field, as in Go."""
    try:
        return model.model_validate(_without_nulls(content), by_alias=True, by_name=False)
    except ValidationError as error:
        for detail in error.errors(include_url=False):
            found = field_error(detail, _UNKNOWN_FIELD)
            errors.append(replace(found, path=".".join(part for part in (path, found.path) if part)))
        return None


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value


def _profiles(configuration: KubeSchedulerConfiguration, errors: list[FieldError]) -> Mapping[str, Profile]:
    unmodelled_steps = tuple(_extenders(configuration))
    ignored = frozenset(
        resource.name
        for extender in configuration.extenders
        for resource in extender.managed_resources
        if resource.ignored_by_scheduler
    )
    given = configuration.profiles or (KubeSchedulerProfile(),)
    found: dict[str, Profile] = {}
    for index, profile in enumerate(given):
        path = f"profiles[{index}]"
        name = profile.scheduler_name or (
            DEFAULT_SCHEDULER if profile.scheduler_name is None and len(given) == 1 else ""
        )
        if not name:
            errors.append(required(f"{path}.schedulerName", "each of several profiles needs a name"))
        if name in found:
            errors.append(
                FieldError(f"{path}.schedulerName", "Duplicate value", name, "give each profile its own name")
            )
        errors += plugin_errors(profile.plugins, f"{path}.plugins")
        args = _plugin_args(profile, path, errors)
        args = replace(args, ignored_resources=args.ignored_resources | ignored)
        found[name] = _profile(name, profile, args, unmodelled_steps)
    names, preempting = frozenset(found), _preempting_extenders(configuration)
    return {
        name: replace(profile, scheduler_names=names, preempting_extenders=preempting)
        for name, profile in found.items()
    }


def _profile(
    name: str, profile: KubeSchedulerProfile, args: PluginArgs, unmodelled_steps: tuple[UnmodelledStep, ...]
) -> Profile:
    expansion = expand(profile.plugins)
    enabled: Enabled | None = _enabled(expansion)
    if enabled == _enabled(expand(Plugins())):
        enabled = None
    if GANG_SCHEDULING in expansion.multi_point:
        unmodelled_steps += (UnmodelledStep(GANG_SCHEDULING),)
    return Profile.of(name, args, enabled, unmodelled_steps)


def _enabled(expansion: Expansion) -> Enabled:
    return Enabled(
        expansion.by_point["preFilter"],
        expansion.by_point["filter"],
        tuple((each, expansion.weights[each]) for each in expansion.by_point["score"]),
        expansion.by_point["postFilter"],
    )


def _extenders(configuration: KubeSchedulerConfiguration) -> Iterator[UnmodelledStep]:
    for extender in configuration.extenders:
        if extender.filter_verb or extender.prioritize_verb or extender.bind_verb:
            yield _step(extender, scores_only=not (extender.filter_verb or extender.bind_verb))


def _preempting_extenders(configuration: KubeSchedulerConfiguration) -> tuple[UnmodelledStep, ...]:
    return tuple(_step(extender) for extender in configuration.extenders if extender.preempt_verb)


def _step(extender: Extender, *, scores_only: bool = False) -> UnmodelledStep:
    resources = frozenset(resource.name for resource in extender.managed_resources)
    return UnmodelledStep(f"extender {extender.url_prefix}".strip(), resources, scores_only=scores_only)


def _plugin_args(profile: KubeSchedulerProfile, path: str, errors: list[FieldError]) -> PluginArgs:
    seen: set[str] = set()
    args = PluginArgs()
    for index, config in enumerate(profile.plugin_config):
        where = f"{path}.pluginConfig[{index}]"
        if config.name in seen:
            errors.append(FieldError(f"{where}.name", "Duplicate value", config.name, "give each plugin's args once"))
        seen.add(config.name)
        row = PLUGIN_BY_NAME.get(config.name)
        if row is None:
            detail = "must be a plugin that is built into kube-scheduler 1.37"
            errors.append(invalid(f"{where}.name", config.name, detail))
        elif row.args is not None:
            read = _read(row.args, config.args, f"{where}.args", errors)
            if read is not None:
                if read.kind not in ("", f"{config.name}Args"):
                    errors.append(invalid(f"{where}.args.kind", read.kind, f"must be {config.name}Args"))
                args = _with(args, read, config.args, f"{where}.args", errors)
    return args


def _with(args: PluginArgs, read: Args, raw: Mapping[str, Any], path: str, errors: list[FieldError]) -> PluginArgs:
    if isinstance(read, NodeResourcesFitArgs):
        return replace(
            args,
            scoring_strategy=_strategy(read.scoring_strategy),
            ignored_resources=frozenset(read.ignored_resources),
            ignored_resource_groups=frozenset(read.ignored_resource_groups),
        )
    if isinstance(read, NodeResourcesBalancedAllocationArgs):
        return replace(args, balanced_resources=tuple(each.name for each in read.resources) or (CPU, MEMORY))
    if isinstance(read, InterPodAffinityArgs):
        return replace(
            args,
            hard_pod_affinity_weight=read.hard_pod_affinity_weight,
            ignore_preferred_terms_of_existing_pods=read.ignore_preferred_terms_of_existing_pods,
        )
    if isinstance(read, PodTopologySpreadArgs):
        constraints = tuple(_constraint(each) for each in read.default_constraints)
        is_list = read.defaulting_type == "List"
        return replace(args, default_constraints=constraints, system_defaulted=False) if is_list else args
    if isinstance(read, NodeAffinityArgs):
        return replace(args, added_affinity=_added_affinity(raw, path, errors))
    if isinstance(read, DefaultPreemptionArgs):
        return replace(
            args,
            min_candidate_nodes_percentage=read.min_candidate_nodes_percentage,
            min_candidate_nodes_absolute=read.min_candidate_nodes_absolute,
        )
    if isinstance(read, VolumeBindingArgs) and read.shape:
        return replace(args, storage_score=_utilization_score(read.shape))
    return args


def _strategy(strategy: ScoringStrategyArgs) -> ScoringStrategy:
    resources = tuple((each.name, each.weight or 1) for each in strategy.resources) or ((CPU, 1), (MEMORY, 1))
    ratio = strategy.requested_to_capacity_ratio
    if ratio is not None:
        return ScoringStrategy(_utilization_score(ratio.shape), resources, counts_zeros=False)
    score = most_requested_score if strategy.type == "MostAllocated" else least_requested_score
    return ScoringStrategy(score, resources)


def _utilization_score(shape: Iterable[UtilizationShapePoint]) -> UtilizationScore:
    return UtilizationScore(tuple((point.utilization, point.score * _MAX_NODE_SCORE_PER_POINT) for point in shape))


def _constraint(constraint: DefaultConstraint) -> SpreadConstraint:
    return SpreadConstraint(
        topology_key=constraint.topology_key,
        max_skew=constraint.max_skew,
        when_unsatisfiable=constraint.when_unsatisfiable,
        selector=None,
        min_domains=constraint.min_domains or 1,
        honors_affinity=constraint.node_affinity_policy != "Ignore",
        honors_taints=constraint.node_taints_policy == "Honor",
    )


def _added_affinity(raw: Mapping[str, Any], path: str, errors: list[FieldError]) -> NodeAffinityTerms:
    """Return the added affinity. Check the rules for selectors that the model does not check."""
    reader = Reader(raw, step=path)
    terms = read_node_affinity(reader, "addedAffinity")
    errors += reader.errors
    return terms
