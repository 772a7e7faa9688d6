"""Settings of the admission of workload objects."""

from typing import Literal

from webhook.policy.fields import StrictModel


class WorkloadObjects(StrictModel):
    """The admission of objects that create pods, such as Deployments, which are patched only with `mutateTemplates`.

    Their pod templates are evaluated as their pods will be, and the user gets the result when the object is applied.
    """

    enabled: bool = True
    """Evaluate workload objects. With `false` they are allowed without evaluation; their pods are evaluated anyway."""

    report: Literal["problems", "always"] = "problems"
    """When the user gets the verdict as a warning: if a pod does not fit, or also if all pods fit. A warning without a
    problem makes `kubectl --warnings-as-errors` fail."""

    invalid_annotations: Literal["deny", "warn"] | None = None
    """The handling of a workload object with an invalid annotation on a pod template: deny it, or allow it with a
    warning. If absent: the value of `spec.invalidAnnotations`."""

    mutate_templates: bool = False
    """Also inject into the pod templates of the object, so that autoscalers and queues plan with the constraints of the
    pods. Their pods are then created as they are admitted. Only for the kinds in docs/workloads.md."""
