"""Every policy and pod in the YAML blocks of the documents is valid."""

import pytest

from tests.docs.markdown import DOCUMENTS, Block, blocks
from webhook.documents.documents import parse
from webhook.kube.shape import check_pod
from webhook.kube.workloads.pod_sets import pod_sets
from webhook.kube.workloads.workload_kinds import kinds_by_name
from webhook.policy.loader import parse_policies
from webhook.policy.policy_documents import policy_set
from webhook.policy.spec.document import KIND

EXAMPLES = [pytest.param(block, id=block.place) for document in DOCUMENTS for block in blocks(document, "yaml")]


@pytest.mark.parametrize("block", EXAMPLES)
def test_example_is_valid(block: Block) -> None:
    for document in parse(block.text, block.place):
        kind = document.content.get("kind")
        if kind == KIND:
            policy_set(parse_policies(block.text, block.place))
        elif kind is not None:
            for pods in pod_sets(document.content, kinds_by_name()):
                check_pod(pods.pod)
