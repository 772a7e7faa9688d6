"""The toleration whitelists of namespaces allow what is injected."""

from collections.abc import Iterator
from typing import Any

import orjson

from webhook.doctor import commands
from webhook.doctor.check import check
from webhook.doctor.finding import Fault, named, warning
from webhook.doctor.installation import Installation, JsonObject, listed, name_of, texts
from webhook.doctor.sample_pods import judge, sample_pod, types_of
from webhook.doctor.source import Source
from webhook.kube.taints import covers

_WHITELIST = "scheduler.alpha.kubernetes.io/tolerationsWhitelist"


@check(
    "tolerations-whitelist",
    "The whitelist of a namespace (admission plugin PodTolerationRestriction) refuses the injected tolerations",
    "add the injected tolerations to the annotation `scheduler.alpha.kubernetes.io/tolerationsWhitelist`",
    Source.NAMESPACES,
    Source.POLICY,
)
def find(installation: Installation) -> Iterator[Fault]:
    """Yield a fault for each namespace with a whitelist that refuses pods of a type that it may use.

    The plugin is off by default, but the annotation has no other use. The whitelist of the cluster is in the
    configuration of API servers, which cannot be read.

    Source: k8s.io/kubernetes/plugin/pkg/admission/podtolerationrestriction/admission.go
    """
    for namespace in installation.of(Source.NAMESPACES):
        text = texts(namespace, "metadata", "annotations").get(_WHITELIST)
        if not text:
            continue
        name = name_of(namespace)
        where = f"Namespace {name}: metadata.annotations[{_WHITELIST}]"
        allowed = _parsed(text)
        if allowed is None:
            removed = commands.command("kubectl", "annotate", "namespace", name, f"{_WHITELIST}-")
            yield warning(
                where, "is no list of tolerations, so the plugin refuses all pods", f"{removed}, or correct it"
            )
            continue
        refused = _refused(installation, name, allowed) if allowed else {}
        if refused:
            missing = {_shown(each): each for tolerations in refused.values() for each in tolerations}
            shown = named(missing, 4)
            what = f"refuses pods of {named(refused)} with 403: it does not cover {shown}"
            text = orjson.dumps([*allowed, *missing.values()]).decode()
            wider = commands.command("kubectl", "annotate", "--overwrite", "namespace", name, f"{_WHITELIST}={text}")
            yield warning(where, what, f"{wider} adds them")


def _parsed(text: str) -> list[JsonObject] | None:
    try:
        found = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    return found if isinstance(found, list) and all(isinstance(each, dict) for each in found) else None


def _refused(installation: Installation, namespace: str, allowed: list[JsonObject]) -> dict[str, list[JsonObject]]:
    """Return the tolerations that are not allowed, by workload type."""
    found = {}
    policy = installation.policy_of(namespace)
    for name in types_of(policy, namespace):
        resource = next((each for each in policy.spec.accelerators[0].resources if "*" not in each), None)
        judged = judge(sample_pod(policy, name, resource), namespace, policy)
        tolerations = listed(judged.pod or {}, "spec", "tolerations")
        missing = [each for each in tolerations if not any(covers(wide, each) for wide in allowed)]
        if missing:
            found[name] = missing
    return found


def _shown(toleration: dict[str, Any]) -> str:
    value = f"={toleration['value']}" if toleration.get("value") else ""
    return f"{toleration.get('key', '')}{value}:{toleration.get('effect', '')}"
