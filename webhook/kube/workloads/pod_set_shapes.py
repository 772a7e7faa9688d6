"""Read the pod of a template, with one function for each shape of template."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import islice
from typing import Any

from webhook.documents.documents import JsonObject, field
from webhook.documents.field import InvalidInput, invalid
from webhook.documents.object_path import Match, value_at
from webhook.documents.parts import items_at, listed, object_at
from webhook.kube.workloads.inline_pods import inline_container, pod_spec, spark_pod
from webhook.kube.workloads.pod_template_path import Shaped

# The fields by which a component of an InferenceService names its model; the container comes from the serving runtime.
_MODELS = (
    *("model", "huggingface", "triton", "pytorch", "tensorflow", "onnx", "sklearn", "xgboost", "lightgbm"),
    *("paddle", "pmml", "mlflow", "art"),
)
_POD_SPEC_FIELDS = (
    *("activeDeadlineSeconds", "affinity", "automountServiceAccountToken", "containers", "dnsConfig", "dnsPolicy"),
    *("enableServiceLinks", "ephemeralContainers", "hostAliases", "hostIPC", "hostNetwork", "hostPID", "hostUsers"),
    *("hostname", "hostnameOverride", "imagePullSecrets", "initContainers", "nodeName", "nodeSelector", "os"),
    *("overhead", "preemptionPolicy", "priority", "priorityClassName", "readinessGates", "resourceClaims", "resources"),
    *("restartPolicy", "runtimeClassName", "schedulerName", "schedulingGates", "securityContext", "serviceAccountName"),
    *("setHostnameAsFQDN", "shareProcessNamespace", "subdomain", "terminationGracePeriodSeconds", "tolerations"),
    *("topologySpreadConstraints", "volumes"),
)
_FROM_RUNTIME = (
    "its container comes from the serving runtime of the model, which can also add resources, node selectors, "
    "tolerations and annotations"
)
_PATCHED = "podSpecPatch can change every field of the pod"
_PARAMETER = "the pod depends on parameters of the workflow, such as {}"


def pod_template(found: Match, _: JsonObject) -> Shaped:
    """Return the pod of a PodTemplateSpec."""
    path, template = found.path, found.value
    metadata = template.get("metadata")
    if metadata is not None and not isinstance(metadata, Mapping):
        raise InvalidInput([invalid(f"{path}.metadata", metadata, "must be an object")])
    own = metadata or {}
    return Shaped(
        own.get("labels"), own.get("annotations"), template.get("spec"), f"{path}.metadata.annotations", f"{path}.spec"
    )


def added_template(found: Match, content: JsonObject) -> Shaped:
    """Return the pod of a PodTemplateSpec, or of one that the controller adds because the object has none."""
    shaped = pod_template(found, content)
    if found.value:
        return shaped
    return replace(shaped, spec={"containers": [{"name": "main"}]}, caveat=f"its controller adds {found.path}")


def ray_submitter(found: Match, content: JsonObject) -> Shaped | None:
    """Return the pod that submits a RayJob, or None if KubeRay submits it without a pod of its own.

    A RayJob without a template has the selector of a RayCluster instead.

    Source: github.com/ray-project/kuberay, ray-operator/controllers/ray/common/job.go, GetSubmitterTemplate;
    rayjob_controller.go, Reconcile
    """
    stem = found.path.rpartition(".")[0]
    job = value_at(content, stem, ()).value
    template = job.get("submitterPodTemplate")
    if job.get("submissionMode") not in (None, "", "K8sJobMode") or not (template or found.value):
        return None
    path = f"{stem}.submitterPodTemplate"
    made = pod_template(Match(path, (), {"spec": _SUBMITTER} if template is None else template), content)
    return replace(made, path=path)


_SUBMITTER: JsonObject = {
    "restartPolicy": "Never",
    "containers": [
        {
            "name": "ray-job-submitter",
            "resources": {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m", "memory": "200Mi"}},
        }
    ],
}


def component(found: Match, _: JsonObject) -> Shaped:
    """Return the pod of a component of an InferenceService, with the fields that the object defines."""
    path, inline = found.path, found.value
    spec = {name: inline[name] for name in _POD_SPEC_FIELDS if inline.get(name) is not None}
    caveat = ""
    model = next((inline[name] for name in _MODELS if isinstance(inline.get(name), Mapping)), None)
    if model is not None:
        caveat = _FROM_RUNTIME
        if "containers" not in spec:
            spec["containers"] = [{"name": "kserve-container", "resources": model.get("resources") or {}}]
    elif inline.get("workerSpec") is not None:
        caveat = f"the worker pods of {path}.workerSpec are not counted"
    return Shaped(inline.get("labels"), inline.get("annotations"), spec, f"{path}.annotations", path, caveat)


def workflow_template(found: Match, content: JsonObject) -> Shaped | None:
    """Return the pod of a template of an Argo Workflow, or None for a template without a container (steps, dag).

    Source: github.com/argoproj/argo-workflows, workflow/controller/workflowpod.go, build, addSchedulingConstraints,
    addVolumeReferences, addMetadata; workflow/controller/operator.go, mergedTemplateDefaultsInto
    """
    path = found.path
    workflow = object_at(object_at(content, "spec"), "workflowSpec") or object_at(content, "spec")
    template = _with_defaults(found.value, workflow.get("templateDefaults"), _DEPTH_OF_DEFAULTS)
    main = next((template[name] for name in ("container", "script") if template.get(name) is not None), None)
    containers = [main] if main is not None else field(template, "containerSet", "containers")
    if not isinstance(containers, list):
        return None
    spec: JsonObject = {"containers": [*containers, *items_at(template, "sidecars")]}
    if init_containers := items_at(template, "initContainers"):
        spec["initContainers"] = init_containers
    mounted = {*_mounted([*spec["containers"], *init_containers, template.get("containerSet")])}
    if volumes := [each for source in (template, workflow) for each in items_at(source, "volumes")]:
        spec["volumes"] = [each for each in volumes if not isinstance(each, Mapping) or each.get("name") in mounted]
    for name in _SCHEDULING:
        key = "podPriorityClassName" if name == "priorityClassName" else name
        if value := template.get(name) or workflow.get(key):
            spec["resources" if name == "podResources" else name] = value
    labels = _merged(field(workflow, "podMetadata", "labels"), field(template, "metadata", "labels"))
    annotations = _merged(field(workflow, "podMetadata", "annotations"), field(template, "metadata", "annotations"))
    caveat = _workflow_caveat(template, workflow, (annotations, spec), mounted)
    is_entry = content.get("kind") == "Workflow" and template.get("name") == workflow.get("entrypoint") is not None
    name = "{name}" if is_entry and not template.get("retryStrategy") else ""
    return Shaped(labels, annotations, spec, f"{path}.metadata.annotations", path, caveat, name)


_SCHEDULING = (
    *("affinity", "nodeSelector", "podResources", "priorityClassName", "resourceClaims", "schedulerName"),
    "tolerations",
)
# Containers have their resources at this depth. Objects of users can be far deeper.
_DEPTH_OF_DEFAULTS = 6
# The number of templates that are searched for constraints that they pass on to the templates that they call.
_MOST_CALLERS = 64


def _with_defaults(own: Any, defaults: Any, depth: int) -> Any:
    if not depth or not isinstance(own, Mapping) or not isinstance(defaults, Mapping):
        return defaults if own is None else own
    return {**defaults, **{key: _with_defaults(value, defaults.get(key), depth - 1) for key, value in own.items()}}


def _mounted(containers: Iterable[Any]) -> Iterator[str]:
    for container in containers:
        for mount in listed(container, "volumeMounts"):
            if isinstance(mount.get("name"), str):
                yield mount["name"]


def _workflow_caveat(
    template: Mapping[str, Any], workflow: Mapping[str, Any], values: Iterable[Any], mounted: set[str]
) -> str:
    """Return the property of the pod of `template` that the workflow does not define, or "" if it defines all."""
    if template.get("podSpecPatch") or workflow.get("podSpecPatch"):
        return _PATCHED
    if parameter := next(_parameters(values), None):
        return _PARAMETER.format(parameter)
    claims = (object_at(each, "metadata").get("name") for each in items_at(workflow, "volumeClaimTemplates"))
    if any(isinstance(name, str) and name in mounted for name in claims):
        return "it mounts a claim that the workflow creates from volumeClaimTemplates"
    callers = (each for each in islice(items_at(workflow, "templates"), _MOST_CALLERS) if isinstance(each, Mapping))
    for caller in callers:
        passed = [name for name in _PASSED_ON if caller.get(name) and not template.get(name)]
        if passed and (caller.get("steps") is not None or caller.get("dag") is not None):
            return f"the {passed[0]} of a template with steps or a dag can apply to it"
    return ""


_PASSED_ON = ("affinity", "nodeSelector", "tolerations")


def _merged(first: Any, second: Any) -> Any:
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        return {**first, **second}
    return first if second is None else second


def _parameters(values: Iterable[Any]) -> Any:
    """Yield the strings in `values` that contain a parameter of Argo, except in commands and environments."""
    stack = list(values)
    while stack:
        value = stack.pop()
        if isinstance(value, str):
            if "{{" in value:
                yield value
        elif isinstance(value, Mapping):
            stack += [inner for key, inner in value.items() if key not in _IRRELEVANT]
        elif isinstance(value, list):
            stack += value


_IRRELEVANT = frozenset(("args", "command", "env", "image", "source", "workingDir", "subPath", "mountPath"))

SHAPES = {
    "PodTemplate": pod_template,
    "AddedTemplate": added_template,
    "Component": component,
    "RaySubmitter": ray_submitter,
    "WorkflowTemplate": workflow_template,
    "PodSpec": pod_spec,
    "InlineContainer": inline_container,
    "SparkPod": spark_pod,
}
