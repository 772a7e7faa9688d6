"""Validate a PlacementPolicy when it is written, as a server does before it puts the policy into force."""

from webhook.admission.cluster_view import scheduler_for
from webhook.admission.injection import Denied
from webhook.admission.policy_cases import parse_tested_policy
from webhook.admission.verdict import Advised, ObjectVerdict
from webhook.documents.field import InvalidInput
from webhook.kube.api.admission import AdmissionRequest
from webhook.kube.api.review_answer import Denial
from webhook.kube.deadline import DeadlineNearError, Expired, never
from webhook.policy.policy import Policy
from webhook.policy.policy_documents import check_selection, policy_text

_NOT_CHECKED = "the policy is not validated yet, because its test cases take long; its status has the result"


def validated_policy(text: bytes, place: str, expired: Expired = never) -> Policy:
    """Return the policy in `text`, the document of an object, after checking that its schedulers can be created.

    Raises:
        InvalidInput: the text is not one valid PlacementPolicy, or a test case fails.
        DeadlineNearError: `expired()` returned true between two test cases.
    """
    policy = parse_tested_policy(text, place, expired)
    check_selection(policy)
    scheduler_for(policy, cache_bytes=0)
    return policy


def admit_policy_object(request: AdmissionRequest, expired: Expired) -> ObjectVerdict:
    """Return the verdict on a PlacementPolicy that is created or updated. It is denied if servers would reject it."""
    try:
        validated_policy(policy_text(request.object or {}), f"PlacementPolicy {request.name}", expired)
    except InvalidInput as error:
        message = "; ".join(map(str, error.errors))
        return Denied(Denial(422, "Invalid", message), None, errors=tuple(error.errors))
    except DeadlineNearError:
        return Advised(None, (_NOT_CHECKED,))
    return Advised(None)
