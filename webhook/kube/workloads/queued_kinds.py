"""The objects by which pods wait in a queue, and the places where objects that create pods name the queue.

Every pod that Volcano, KAI or Kueue queues has such an object in its namespace, written by a user or by a controller,
and its queue decides: whether a label, an annotation, a field of an owner or a default has chosen it.

Source: volcano.sh/volcano/pkg/controllers/podgroup/pg_controller_handler.go, buildPodGroupFromPod;
github.com/NVIDIA/KAI-scheduler/pkg/podgrouper/podgrouper/plugins/defaultgrouper/default_grouper.go, CalcPodGroupQueue;
sigs.k8s.io/kueue/apis/kueue/v1beta1/workload_types.go, WorkloadSpec
"""

from collections.abc import Mapping

from webhook.kube.names import KAI_DEFAULT_QUEUE, KUEUE_QUEUE, VOLCANO_DEFAULT_QUEUE
from webhook.kube.workloads.pod_template_path import WorkloadKind

_KINDS = (
    WorkloadKind(
        "scheduling.volcano.sh", "PodGroup", "podgroups", (), queue="spec.queue", default_queue=VOLCANO_DEFAULT_QUEUE
    ),
    WorkloadKind("scheduling.run.ai", "PodGroup", "podgroups", (), queue="spec.queue", default_queue=KAI_DEFAULT_QUEUE),
    WorkloadKind("kueue.x-k8s.io", "Workload", "workloads", (), queue="spec.queueName"),
)
QUEUED_KINDS: Mapping[tuple[str, str], WorkloadKind] = {(each.group, each.kind): each for each in _KINDS}
"""The kinds by group and kind."""

# Source: github.com/NVIDIA/KAI-scheduler/pkg/common/constants/constants.go; github.com/ray-project/kuberay/
# ray-operator/controllers/ray/batchscheduler/volcano/volcano_scheduler.go; sigs.k8s.io/lws/pkg/schedulerprovider/
# volcano_provider.go; sigs.k8s.io/kueue/pkg/controller/jobframework/interface.go, QueueNameForObject
QUEUE_KEYS = (KUEUE_QUEUE, "kai.scheduler/queue", "volcano.sh/queue-name", "scheduling.volcano.sh/queue-name")
"""The labels and annotations by which an object that creates pods can name the queue of its pods."""
