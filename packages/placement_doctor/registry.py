"""The registry of the checks, in the order of their findings."""

from placement_doctor.check import Check
from placement_doctor.checks import (
    calls,
    certificates,
    namespaces,
    node_devices,
    node_pools,
    node_spelling,
    node_templates,
    policies,
    preemption,
    schedulers,
    serving,
    topology,
)

_OF_POLICIES: tuple[Check, ...] = (
    schedulers.schedulers,
    schedulers.backends,
    schedulers.priority_classes,
    preemption.preemption,
    schedulers.queues,
    namespaces.tolerations_whitelist,
    namespaces.cross_namespace_quotas,
    namespaces.gpu_defaults,
    node_pools.pools,
    node_pools.workload_types,
    node_pools.node_usage,
    node_pools.node_products,
    node_spelling.node_spelling,
    node_devices.node_devices,
    node_templates.node_templates,
    topology.topology_labels,
    topology.topology_requests,
)

CHECKS: tuple[Check, ...] = (
    serving.readable,
    serving.installed,
    serving.service,
    serving.endpoint,
    certificates.ca_bundle,
    certificates.certificate,
    certificates.certs_controller,
    serving.answer,
    serving.failure_policy,
    namespaces.own_namespace,
    serving.missed_pods,
    calls.selectors,
    calls.order,
    calls.reinvocation,
    calls.match_conditions,
    calls.timeouts,
    policies.policy,
    policies.policy_objects,
    policies.exported_policy,
    policies.rights,
    policies.release,
    certificates.clock,
    *_OF_POLICIES,
)

POLICY_CHECKS = frozenset(each.id for each in _OF_POLICIES)
"""The ids of the checks that compare policies with the cluster, without the installation."""
