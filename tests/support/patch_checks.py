"""Check patches with `jsonpatch`: they give the pod that was judged, and the user keeps every value."""

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

import orjson

from tests.support.invariants import lost_values, may_replace, overruled_values
from webhook.admission.injection import Injection, inject
from webhook.admission.pod_content import PodContent
from webhook.documents.documents import JsonObject
from webhook.documents.field import InvalidInput
from webhook.documents.object_path import segments
from webhook.kube.api.admission import AdmissionRequest
from webhook.kube.api.independent_patch import independently_patched
from webhook.kube.api.json_patch import patched
from webhook.kube.pod.pod_view import PodView
from webhook.kube.workloads.pod_set import PodSet
from webhook.kube.workloads.pod_sets import each_pod_set
from webhook.objects.workload import MOST_TEMPLATES, in_namespace, namespace_defaults
from webhook.policy.policy import Policy

Operations = Sequence[Mapping[str, Any]]


def check_pod_patch(content: PodContent, operations: Operations, policy: Policy) -> None:
    """Check that `operations` turn the pod of `content` into the one that `policy` makes of it, without any cache."""
    after = independently_patched(content.pod, operations)
    assert canonical(after) == canonical(_judged(content, policy) or content.pod)
    assert [*overruled_values(content.pod, after, policy)] == []


def check_template_patch(request: AdmissionRequest, operations: Operations, policy: Policy) -> None:
    """Check that `operations` give each pod template of the object what `policy` injects into its pods."""
    before = in_namespace(request)
    after = independently_patched(before, operations)
    old, new = ([*islice(each_pod_set(each, policy.kinds), MOST_TEMPLATES)] for each in (before, after))
    assert [each.path for each in old] == [each.path for each in new]
    templates: dict[tuple[str, ...], tuple[JsonObject, JsonObject]] = {}
    for written, now in zip(old, new, strict=True):
        path = segments(written.path)
        judged = _judged_template(written, request, policy)
        # A template can be left alone; of one with several roles, the first counts.
        if path not in templates and now.pod != written.pod and judged is not None:
            assert canonical(now.pod) == canonical(judged)
            templates[path] = written.pod, now.pod
    for place in lost_values(before, after):
        path = next(each for each in templates if place[: len(each)] == each)
        assert may_replace(place[len(path) :], *templates[path], policy), place


def _judged_template(pods: PodSet, request: AdmissionRequest, policy: Policy) -> JsonObject | None:
    defaults = namespace_defaults(request, policy, None)
    content = PodContent(request.with_object(pods.pod), defaults)
    try:
        return _judged(content, policy.with_invalid_annotations("warn"))
    except InvalidInput:
        return None


def _judged(content: PodContent, policy: Policy) -> JsonObject | None:
    result = inject(content, policy)
    if not isinstance(result, Injection) or not result.operations:
        return None
    return patched(content.pod, result.operations)


def canonical(pod: Mapping[str, Any]) -> bytes:
    """Return what is read of `pod` as JSON, in which 1, 1.0 and True differ, as they do not by `==`."""
    view = PodView.of(pod)
    assert view is not None
    return orjson.dumps(orjson.loads(view.created()), option=orjson.OPT_SORT_KEYS)
