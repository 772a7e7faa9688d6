"""The policy that the server starts with, and the file that it follows."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import structlog

from webhook.kube.field import InvalidInput, forbidden
from webhook.kube.wellknown import NAMESPACE_NAME_LABEL
from webhook.metrics import Metrics
from webhook.pipeline import scheduler_for
from webhook.policy.loader import built_in_policy
from webhook.policy.policy import Policy
from webhook.policy.policy_documents import PlacedPolicy, policy_set
from webhook.policy.policy_set import PolicySet
from webhook.policy_cases import parse_tested_policies, parse_tested_policy
from webhook.serving.clock import rfc3339_now
from webhook.serving.cluster_policies import ClusterPolicies
from webhook.serving.policies import Policies
from webhook.serving.policy_file import PolicyFile, read_policy_file
from webhook.serving.server import PolicySource
from webhook.watch.api_server import Connect


def last_file(paths: Sequence[Path]) -> Path | None:
    """Return the last of the files, None if there is none; log the others, which are not used."""
    *others, last = paths or (None,)
    if others:
        ignored = [str(each) for each in others]
        structlog.get_logger().warning("--policy is given several times", used=str(last), ignored=ignored)
    return last


def followed_policy(path: Path | None, metrics: Metrics, *, knows_labels: bool) -> tuple[Policies, PolicyFile | None]:
    """Return the policies to start with, and the file that they follow, if they come from one.

    `knows_labels`: there is a view of the cluster, which has the labels of namespaces.

    Raises:
        InvalidInput: a document of the file is not a valid PlacementPolicy, a test case fails, or the policies cannot
            be in force together.
    """
    if path is None:
        return Policies(built_in_policy(), metrics, rfc3339_now), None
    text, validated = read_policy_file(path), partial(_validated_file, knows_labels=knows_labels)
    policies = Policies(validated(text, str(path)), metrics, rfc3339_now, source=f"file {path}")
    return policies, PolicyFile(path, text, policies, validated)


_LABELS = (
    "the labels of namespaces are not known without a view of the cluster: give --in-cluster, --kubeconfig or "
    f"--cluster, or select by {NAMESPACE_NAME_LABEL} alone"
)


def _reads_labels(each: PlacedPolicy) -> bool:
    selector = each.policy.spec.namespace_selector
    return selector is not None and not selector.keys <= {NAMESPACE_NAME_LABEL}


def with_objects(
    kind: str, connect: Connect, policies: Policies, file: PolicyFile | None, metrics: Metrics
) -> PolicySource | None:
    """Return the source of policies: `file`, or with the kind `crd` the objects of a cluster before `file`."""
    if kind != "crd":
        return file
    policies.follow(partial(_warn_of_equal_names, policies))
    return ClusterPolicies(connect, policies, _validated, rfc3339_now, file, metrics.feed_faults.inc)


_RENAME = "give the default policy of the file another name"


def _warn_of_equal_names(policies: Policies, default: Policy) -> None:
    """Warn of an object with the name of the file's default policy: on pods, the revision alone tells them apart."""
    other = policies.in_force().with_name_of_default()
    if other is not None:
        log = structlog.get_logger()
        log.warning("two policies have one name", default=default.identity, other=other.identity, error=_RENAME)


def _validated_file(text: bytes, place: str, *, knows_labels: bool) -> PolicySet:
    """Return the policies in `text`, which pass their test cases, and of which schedulers can be made.

    Raises:
        InvalidInput: a document is not a valid PlacementPolicy, a test case fails, or they cannot be in force together.
    """
    found = parse_tested_policies(text, place)
    policies = policy_set(found)
    if not knows_labels:
        errors = [forbidden(f"{each.place}: spec.namespaceSelector", _LABELS) for each in found if _reads_labels(each)]
        if policies.others and errors:
            raise InvalidInput(errors)
    for each in policies:
        scheduler_for(each, cache_bytes=0)
    return policies


def _validated(text: bytes, place: str) -> Policy:
    """Return the policy in `text`, which passes its test cases, and of which schedulers can be made.

    Raises:
        InvalidInput: it is not one valid PlacementPolicy, or a test case fails.
    """
    policy = parse_tested_policy(text, place)
    scheduler_for(policy, cache_bytes=0)
    return policy
