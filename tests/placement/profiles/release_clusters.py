"""Clusters in two zones, and the placement of a pod by release."""

from dataclasses import replace
from typing import Any

from tests.support.objects.builders import PodBuilder
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.documents.documents import Document
from webhook.kube.release import Release
from webhook.placement.scheduler import Placement, Scheduler

Object = dict[str, Any]


def placed(release: int, pod: PodBuilder, *objects: Object) -> Placement:
    snapshot = snapshot_from_documents(Document("cluster", each) for each in objects)
    return Scheduler().place(pod.obj(), replace(snapshot, release=Release(release)))
