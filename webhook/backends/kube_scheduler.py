"""Profiles of kube-scheduler: without gangs, with the Coscheduling plugin, and with gang scheduling of its own."""

from functools import partial
from typing import ClassVar

from webhook.backends.backend import (
    SIZE_IN_POD_GROUP,
    Backend,
    DomainRequest,
    InDomain,
    PodField,
    Terms,
    label,
)


class Default(Backend):
    """A profile of kube-scheduler, or an unknown scheduler: one pod at a time, and lower pods can be preempted."""

    name = "default"
    keeps_by_affinity = True
    terms: ClassVar[Terms] = {
        "queue": "has no queues",
        "gang": "starts the pods of a gang one by one",
        "gpu_fraction": "cannot share a card",
        "preemptible": "preempts only by spec.priorityClassName",
    }


class Coscheduling(Backend):
    """The Coscheduling plugin of kubernetes-sigs/scheduler-plugins: gangs by PodGroup.

    Measured with scheduler-plugins 0.34.7: it reads the group only from this label.

    Source: sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1/types.go, PodGroupLabel
    """

    name = "coscheduling"
    keeps_by_affinity = True
    api_groups = ("scheduling.x-k8s.io",)
    group_at = ("metadata", "labels", "scheduling.x-k8s.io/pod-group")
    gang_fields = ((group_at,),)
    terms: ClassVar[Terms] = {**Default.terms, "gang": partial(label, group_at[-1]), "gang_size": SIZE_IN_POD_GROUP}


class Native(Backend):
    """Gang scheduling of kube-scheduler itself (gate GenericWorkload; before 1.37 also GangScheduling).

    A pod whose PodGroup is missing is held before the queue, without a condition or an event. An API server without the
    gate drops the field, which is immutable once the pod exists.

    Source: k8s.io/api/core/v1/types.go, PodSchedulingGroup
    """

    name = "native"
    group_at = ("spec", "schedulingGroup", "podGroupName")
    gang_fields = ((group_at,),)
    terms: ClassVar[Terms] = {
        **Default.terms,
        "gang": partial(PodField, group_at),
        "gang_size": "reads the size of a gang from minCount of its PodGroup: name it",
    }

    @classmethod
    def in_domain(cls, domain: DomainRequest) -> InDomain:
        """Return the reason why no field of a pod states the domain."""
        reads = "reads only spec.schedulingConstraints.topology of the PodGroup"
        return InDomain(missing=reads if domain.is_required else f"{reads}, which has no preferred mode")
