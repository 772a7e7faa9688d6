"""Prove the patch of the pod templates of an object: their pods are as they were judged, and the rest is kept."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

from webhook.admission.evaluation import inject
from webhook.admission.mutated_pod import Injection
from webhook.admission.patch_proof import UnprovenPatchError, apply, check_equal, check_kept
from webhook.admission.pipeline import ClusterView
from webhook.admission.pod_content import PodContent
from webhook.documents.field import InvalidInput
from webhook.documents.object_path import segments
from webhook.kube.api.admission import AdmissionRequest, JsonObject
from webhook.kube.api.json_patch import patched
from webhook.kube.workloads.pod_set import PodSet
from webhook.kube.workloads.pod_sets import each_pod_set
from webhook.mutation.invariants import Steps, lost_values, may_replace
from webhook.objects.workload import MOST_TEMPLATES, in_namespace, namespace_defaults
from webhook.policy.policy import Policy


class _Template(NamedTuple):
    """A template that the policy changes: its first pod as it is written, as it was judged, and with the patch."""

    written: JsonObject
    judged: JsonObject
    patched: JsonObject


def prove_template_patch(
    request: AdmissionRequest, operations: Sequence[Mapping[str, Any]], policy: Policy, cluster: ClusterView | None
) -> None:
    """Check that `operations` give each pod template of the object what `policy` injects into its pods.

    Raises:
        UnprovenPatchError: they do not, or the user loses a value.
        TooDeepError: the object is nested deeper than any.
        InvalidInput: the patched object cannot be read.
    """
    before = in_namespace(request)
    after = apply(before, operations)
    templates = dict(_changed(request, before, after, policy, cluster))
    for template in templates.values():
        check_equal(template.patched, template.judged)
    check_kept(_overruled(before, after, templates, policy))


def _changed(
    request: AdmissionRequest, before: JsonObject, after: JsonObject, policy: Policy, cluster: ClusterView | None
) -> Iterator[tuple[Steps, _Template]]:
    """Yield the templates that the policy changes, by their path; of a template with several roles the first.

    One that the patch leaves alone is not among them: there may have been no time for it, and its pods are patched.
    """
    old, new = ([*islice(each_pod_set(content, policy.kinds), MOST_TEMPLATES)] for content in (before, after))
    if [each.path for each in old] != [each.path for each in new]:
        raise UnprovenPatchError("the patch adds or removes a pod template")
    defaults = namespace_defaults(request, policy, cluster)
    done: set[str] = set()
    for written, now in zip(old, new, strict=True):
        if written.path in done or now.pod == written.pod:
            continue
        judged = _judged(written, request, defaults, policy)
        if judged is not None:
            done.add(written.path)
            yield segments(written.path), _Template(written.pod, judged, now.pod)


def _judged(pods: PodSet, request: AdmissionRequest, defaults: Mapping[str, str], policy: Policy) -> JsonObject | None:
    """Return the first of `pods` with what the policy injects; None if that is nothing, or the pod cannot be read."""
    content = PodContent.of(request.with_object(pods.pod), defaults)
    # An annotation that is invalid, and known, does not keep the others from being injected.
    try:
        result = inject(content, policy.with_invalid_annotations("warn"))
    except InvalidInput:
        return None
    if not isinstance(result, Injection) or not result.operations:
        return None
    return patched(content.pod, result.operations)


def _overruled(
    before: JsonObject, after: JsonObject, templates: Mapping[Steps, _Template], policy: Policy
) -> Iterator[Steps]:
    for place in lost_values(before, after):
        found = next((path for path in templates if place[: len(path)] == path), None)
        if found is not None:
            template = templates[found]
            if may_replace(place[len(found) :], template.written, template.patched, policy):
                continue
        yield place
