"""The policy that the server starts with, and the file that it follows."""

from pathlib import Path

from webhook.metrics import Metrics
from webhook.pipeline import scheduler_for
from webhook.policy.loader import built_in_policy
from webhook.policy.policy import Policy
from webhook.policy_cases import parse_tested_policy
from webhook.serving.clock import rfc3339_now
from webhook.serving.cluster_policies import ClusterPolicies
from webhook.serving.policies import Policies
from webhook.serving.policy_file import PolicyFile, read_policy_file
from webhook.serving.server import PolicySource
from webhook.watch.api_server import Connect


def followed_policy(path: Path | None, metrics: Metrics) -> tuple[Policies, PolicyFile | None]:
    """Return the policy to start with, and the file that it follows, if it comes from one.

    Raises:
        InvalidInput: the file is not one valid PlacementPolicy, or a test case of it fails.
    """
    if path is None:
        return Policies(built_in_policy(), metrics, rfc3339_now), None
    text = read_policy_file(path)
    policies = Policies(_validated(text, str(path)), metrics, rfc3339_now, source=f"file {path}")
    return policies, PolicyFile(path, text, policies, _validated)


def with_objects(
    kind: str, connect: Connect, policies: Policies, file: PolicyFile | None, metrics: Metrics
) -> PolicySource | None:
    """Return the source of policies: `file`, or with the kind `crd` the objects of a cluster before `file`."""
    if kind != "crd":
        return file
    return ClusterPolicies(connect, policies, _validated, rfc3339_now, file, metrics.feed_faults.inc)


def _validated(text: bytes, place: str) -> Policy:
    """Return the policy in `text`, which passes its test cases, and of which schedulers can be made.

    Raises:
        InvalidInput: it is not one valid PlacementPolicy, or a test case fails.
    """
    policy = parse_tested_policy(text, place)
    scheduler_for(policy, cache_bytes=0)
    return policy
