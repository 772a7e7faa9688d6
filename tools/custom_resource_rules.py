"""Rules of the PlacementPolicy in CEL, by model: those of the models and of `webhook.policy.spec.cross_field` that fit.

Rules that compare all entries of long lists with each other, or match patterns, exceed the cost that the API server
allows; the server checks them alone.
"""

import json
from collections.abc import Mapping, Sequence

from webhook.policy.spec.document import PolicySpec
from webhook.policy.spec.schedulers import Spread

_SPEC = PolicySpec()
_ALLOWED_SCHEDULERS = json.dumps(list(_SPEC.allowed_schedulers))
_ALIASES = json.dumps(_SPEC.topology_aliases)
_TYPES = json.dumps(list(_SPEC.workload_types))
_DOMAIN = json.dumps(_SPEC.key_domain)
_WEIGHT = Spread().weight

RULES: Mapping[str, Sequence[tuple[str, str]]] = {
    "PlacementPolicy": (
        (
            (
                "self.metadata.name == 'default' ? !has(self.spec) || !has(self.spec.namespaceSelector) : "
                "has(self.spec) && has(self.spec.namespaceSelector)"
            ),
            (
                "spec.namespaceSelector must be set, but not for the policy named default, which is for all other "
                "namespaces"
            ),
        ),
    ),
    "PolicySpec": (
        (
            "!has(self.workloadTypes) || self.workloadTypes.size() > 0",
            "workloadTypes must hold at least one workload type",
        ),
        (
            (
                "!has(self.workloadTypes) || self.workloadTypes.all(t, !has(self.workloadTypes[t].schedulerName) || "
                f"self.workloadTypes[t].schedulerName in "
                f"(has(self.allowedSchedulers) ? self.allowedSchedulers : {_ALLOWED_SCHEDULERS}))"
            ),
            "allowedSchedulers must hold the schedulerName of each workload type",
        ),
        (
            (
                "!has(self.workloadTypes) || self.workloadTypes.all(t, !has(self.workloadTypes[t].spread) || "
                "!has(self.workloadTypes[t].spread.topology) || self.workloadTypes[t].spread.topology.contains('/') || "
                "self.workloadTypes[t].spread.topology in "
                f"(has(self.topologyAliases) ? self.topologyAliases : {_ALIASES}))"
            ),
            "spread.topology must be one of topologyAliases, or a topology key such as kubernetes.io/hostname",
        ),
        (
            (
                "!has(self.workloadTypes) || self.workloadTypes.all(t, !has(self.workloadTypes[t].within) || "
                "!has(self.workloadTypes[t].within.topology) || self.workloadTypes[t].within.topology.contains('/') || "
                "self.workloadTypes[t].within.topology in "
                f"(has(self.topologyAliases) ? self.topologyAliases : {_ALIASES}))"
            ),
            "within.topology must be one of topologyAliases, or a topology key such as kubernetes.io/hostname",
        ),
        (
            (
                "!has(self.workloadTypes) || self.workloadTypes.all(t, !has(self.workloadTypes[t].extraTolerations) || "
                "!self.workloadTypes[t].extraTolerations.exists(e, e.key == "
                f"(has(self.keyDomain) ? self.keyDomain : {_DOMAIN}) + '/control-plane'))"
            ),
            "no pod may tolerate the control plane",
        ),
        (
            (
                "!has(self.requireType) || self.requireType in ['warn', 'deny'] || "
                f"self.requireType in (has(self.workloadTypes) ? self.workloadTypes.map(t, t) : {_TYPES})"
            ),
            "requireType must be warn, deny or one of workloadTypes",
        ),
        (
            "!has(self.mode) || self.mode != 'shadow' || !has(self.canaryPercent) || self.canaryPercent == 100",
            "canaryPercent has no effect with mode: shadow",
        ),
    ),
    "NodeUsage": (
        (
            "self.allow.size() > 0 && (!has(self.prefer) || self.prefer.all(usage, usage in self.allow))",
            "allow must hold at least one value, and each of prefer: a pod can only prefer what it may use",
        ),
    ),
    "Spread": (
        (
            "!has(self.maxSkew) || self.maxSkew == 1 || (has(self.form) && self.form == 'topologySpread')",
            "maxSkew has no effect without form: topologySpread",
        ),
        (
            (
                f"!has(self.weight) || self.weight == {_WEIGHT} || "
                "((!has(self.form) || self.form == 'antiAffinity') && (!has(self.mode) || self.mode == 'preferred'))"
            ),
            "weight has an effect only with mode: preferred and form: antiAffinity",
        ),
    ),
    "Exemption": (
        (
            (
                "has(self.users) || has(self.groups) || has(self.serviceAccounts) || has(self.namespaces) || "
                "has(self.podLabels)"
            ),
            "must have users, groups, serviceAccounts, namespaces or podLabels",
        ),
    ),
    "LabelRequirement": (
        (
            "(has(self.values) && self.values.size() > 0) == (self.operator in ['In', 'NotIn'])",
            "must have values with In and NotIn, and none with Exists and DoesNotExist",
        ),
    ),
    "PolicyTest": (
        (
            "!has(self.pod) || !(has(self.annotations) || has(self.labels) || has(self.requests))",
            "must have pod, or annotations, labels and requests, not both",
        ),
    ),
}
