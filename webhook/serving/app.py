"""The composition root: creates the objects of the server and connects them."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, get_args

from webhook.admission.cluster_view import ClusterView, scheduler_for
from webhook.audit.record import Outcome
from webhook.audit.writer import AuditWriter
from webhook.cluster.snapshot import Snapshot
from webhook.events.recorder import EventRecorder
from webhook.mutation.rules import RULES
from webhook.objects.object_gang import gang_of_pod
from webhook.placement.framework.result import PlacementVerdict
from webhook.placement.packing.domain_cards import largest_gangs
from webhook.placement.packing.free_cards import FreeCardsByProduct
from webhook.placement.packing.held_cards import HeldCards
from webhook.placement.packing.typical_pods import ExpectedMixes
from webhook.placement.profiles.policy_profiles import card_mixes, profiles_for
from webhook.placement.profiles.profile import Profile
from webhook.placement.reasons.cluster_warnings import is_absent
from webhook.policy.policy import Policy
from webhook.runtime.byte_cache import ByteCache
from webhook.runtime.metrics import Metrics
from webhook.runtime.settings import Settings
from webhook.serving.clock import rfc3339_now
from webhook.serving.decisions.admissions import Admissions, new_decision_id
from webhook.serving.decisions.deciders import WorkerDecider
from webhook.serving.decisions.decision_cache import DecisionCache
from webhook.serving.decisions.group_commit import GroupCommit
from webhook.serving.decisions.pod_recorder import PodRecorder
from webhook.serving.extender.extender_endpoint import Extender
from webhook.serving.extender.extender_pods import RecentlyBound
from webhook.serving.http.bearer_token import BearerToken
from webhook.serving.http.certificate import Certificate
from webhook.serving.http.endpoint import REFUSALS, MutateEndpoint
from webhook.serving.http.health import Health
from webhook.serving.http.request_head import RegisteredTimeout
from webhook.serving.http.tls import Pair, read_pair
from webhook.serving.observed.free_card_gauges import FreeCardGauges
from webhook.serving.observed.predictions import PredictionRecorder, Predictions
from webhook.serving.policies.cluster_policies import PolicySource
from webhook.serving.policies.in_force import Policies
from webhook.serving.policies.policy_scorer import PolicyScorer, ScorerAlone
from webhook.serving.scheduling.dispatcher import Dispatcher
from webhook.serving.server import Server
from webhook.serving.view.views import SnapshotThrottle, StartOfView, View, stale_reason
from webhook.serving.waiting.waiting_pods import WaitingPods

# The worker thread caches rendered decisions, so its scheduler rarely sees a signature twice.
_LARGE_BYTES = 1024 * 1024


_NO_PROFILES: Mapping[str, Profile] = {}
_utc_now = partial(datetime.now, UTC)


class Scoring(NamedTuple):
    """The scorers and the waiting pods of the event loop. Waiting pods use the same rankings as admissions.

    `bound` are the recently bound pods, for which the extender need not reserve room.
    """

    scorers: PolicyScorer
    waiting: WaitingPods
    bound: RecentlyBound


def scoring(
    policies: Policies,
    profiles: Mapping[str, Profile] = _NO_PROFILES,
    observe: Callable[[float], None] = lambda _: None,
    *,
    unseen_seconds: float = math.inf,
) -> Scoring:
    """Return the Scoring with `profiles` and the configuration of the policy in force.

    `observe` is called with the duration in seconds of each prediction at admission. `unseen_seconds` is that of
    `WaitingPods`.
    """
    scorers = PolicyScorer(partial(scheduler_for, profiles=profiles), policies.current(), observe)
    waiting = WaitingPods(
        ScorerAlone(lambda: scorers.of(policies.current()).scorer),
        lambda: policies.current().spec.placement_check.reservation_seconds,
        time.monotonic,
        time.thread_time,
        lambda scheduler, snapshot: is_absent(scheduler, snapshot, policies.current().spec.schedulers),
        unseen_seconds=unseen_seconds,
        gang_of=lambda pod, snapshot: gang_of_pod(pod, policies.current(), snapshot),
    )
    policies.follow(lambda _: waiting.place_all_again())
    return Scoring(scorers, waiting, RecentlyBound())


def build_server(
    settings: Settings,
    policies: Policies,
    view: View | None,
    audit: AuditWriter,
    metrics: Metrics,
    predictions: Predictions | None = None,
    events: EventRecorder | None = None,
    placing: Scoring | None = None,
    policy_file: PolicySource | None = None,
    profiles: Mapping[str, Profile] = _NO_PROFILES,
    timeout: RegisteredTimeout | None = None,
    pods: PodRecorder | None = None,
    read_pair: Callable[[Path], Pair] = read_pair,
) -> Server:
    """Return the server, ready to run. Its predictions are recorded in `predictions`, its decisions in `events`.

    The server decides by the policies in force in `policies`, and follows `policy_file`. With a live `view`, `placing`
    contains the waiting pods of the cluster; with another view, only pods that this server admits. `profiles` are the
    profiles of a KubeSchedulerConfiguration by schedulerName. `timeout` is the registered timeout. `pods` records pods
    for a replay, and `read_pair` reads the certificate.

    Raises:
        InvalidInput: the certificate cannot be served.
    """
    certificate = Certificate(settings.tls_dir, metrics, _utc_now, settings.server_name, settings.client_ca, read_pair)
    metrics.start_at_zero(get_args(Outcome), get_args(PlacementVerdict), REFUSALS, RULES)
    observe = metrics.placement_seconds.observe
    small_scorer, waiting, bound = scoring(policies, profiles, observe) if placing is None else placing
    make = partial(scheduler_for, profiles=profiles, cache_bytes=_LARGE_BYTES)
    large_scorer = PolicyScorer(make, policies.current(), observe)
    throttle = _throttle(view, policies, small_scorer, metrics, profiles)
    free_cards = _free_cards(throttle, policies, metrics) if throttle else None
    health = _health(settings, metrics, policies, free_cards, _readiness(certificate, view, policies, policy_file))
    recorder = PredictionRecorder(predictions, metrics, time.time) if predictions is not None else None
    group_commit = GroupCommit(audit.flush)
    admissions = Admissions(
        metrics,
        audit=audit.stage,
        monotonic_seconds=time.monotonic,
        new_decision=partial(new_decision_id, []),
        replica=settings.replica,
        predicted=recorder.record if recorder else lambda *_: None,
        without_earlier=waiting.without_earlier,
        admitted=waiting.admit,
        reported=events.report if events else lambda *_: None,
        pods=pods,
    )
    small, large = DecisionCache(scorer=small_scorer.of, on_reuse=partial(observe, 0.0)), WorkerDecider(large_scorer.of)
    _show(metrics, waiting, {**small.caches, **large.caches}, (small_scorer, large_scorer))
    cluster = (lambda: waiting.shown_in(throttle())) if throttle else lambda: None
    dispatcher = Dispatcher(admissions, policies.in_force, cluster, small, large)
    extender = _extender(settings, policies, throttle, metrics, bound)
    endpoint = MutateEndpoint(
        dispatcher, metrics, settings, group_commit, rfc3339_now, extender, certificate.current, timeout
    )
    policy = policies.current()
    description = {"policy": policy.name, "revision": policy.revision, "cluster": settings.cluster}
    description |= {"audit": audit.path, "extender": settings.extender_profile}
    return Server(settings, certificate, endpoint, health, metrics, description, policy_file)


def _health(
    settings: Settings,
    metrics: Metrics,
    policies: Policies,
    free_cards: FreeCardGauges | None,
    readiness: Sequence[Callable[[], str]],
) -> Health:
    token = BearerToken(settings.admin_token_file) if settings.admin_token_file else None
    return Health(
        metrics,
        *readiness,
        policy=policies.describe,
        before_scrape=free_cards.refresh if free_cards else None,
        token=token,
    )


def _extender(
    settings: Settings,
    policies: Policies,
    throttle: SnapshotThrottle | None,
    metrics: Metrics,
    bound: RecentlyBound,
) -> Extender | None:
    name = settings.extender_profile
    if name == "none" or throttle is None:
        return None
    return Extender(lambda: profiles_for(policies.current().spec)[name], throttle, metrics, time.monotonic, bound)


def _free_cards(throttle: SnapshotThrottle, policies: Policies, metrics: Metrics) -> FreeCardGauges:
    def counting(policy: Policy) -> FreeCardsByProduct:
        spec = policy.spec
        mixes, temporary = ExpectedMixes(card_mixes(spec)), spec.temporary_taints
        return FreeCardsByProduct(policy.node_usage_key, spec.accelerators, mixes, temporary_taints=temporary)

    def held(snapshot: Snapshot) -> HeldCards:
        return HeldCards.of(snapshot, policies.current().spec.accelerators, int(time.time()))

    def gangs(snapshot: Snapshot) -> Mapping[str, int]:
        return largest_gangs(snapshot, policies.current())

    count = counting(policies.current()).of
    gauges = FreeCardGauges(lambda: throttle().snapshot, count, metrics, time.monotonic, held, gangs)
    policies.follow(lambda policy: gauges.count_by(counting(policy).of))
    return gauges


def _readiness(
    certificate: Certificate, view: View | None, policies: Policies, source: PolicySource | None
) -> Sequence[Callable[[], str]]:
    """Return a function for the reason not to be ready, then functions for problems that leave the server ready."""
    start = StartOfView(view, time.monotonic, lambda: policies.in_force().selects_by_labels)

    def stale() -> str:
        check = policies.current().spec.placement_check
        return stale_reason(view, check.max_view_age_seconds) if view is not None else ""

    def unready_reason() -> str:
        # The source first: until it has judged the objects, it is not known whether labels are needed.
        own = certificate.invalid_reason() or (source.unready_reason() if source else "")
        return own or start.unready_reason()

    return unready_reason, certificate.reload_failure, policies.note, stale, start.note


def _show(
    metrics: Metrics,
    waiting: WaitingPods,
    caches: Mapping[str, tuple[ByteCache[Any, Any], ...]],
    scorers: Sequence[PolicyScorer],
) -> None:
    for name, named in caches.items():
        metrics.show_caches(name, partial(tuple, named))
    metrics.show_caches("placements", lambda: [cache for each in scorers for cache in each.caches])
    metrics.waiting_pods.labels("reserved").set_function(waiting.__len__)
    metrics.waiting_pods.labels("without_room").set_function(lambda: waiting.total - len(waiting))


def _throttle(
    view: View | None,
    policies: Policies,
    scorer: PolicyScorer,
    metrics: Metrics,
    profiles: Mapping[str, Profile],
) -> SnapshotThrottle | None:
    """Return the throttled `view` for admissions and metrics, or None if there is no view."""
    if view is None:
        return None

    def current() -> ClusterView:
        policy = policies.current()
        reason = stale_reason(view, policy.spec.placement_check.max_view_age_seconds)
        return ClusterView(view.snapshot(), scorer.of(policy), reason, profiles=profiles, minute=int(time.time()) // 60)

    throttle = SnapshotThrottle(current, time.monotonic)
    policies.follow(lambda _: throttle.forget())
    metrics.cluster_nodes.set_function(lambda: len(throttle().snapshot.nodes))
    metrics.cluster_pods.set_function(lambda: int(throttle().snapshot.load.pods.sum()))
    metrics.cluster_left_out.set_function(lambda: throttle().snapshot.left_out.count)
    metrics.cluster_age_seconds.set_function(view.age_seconds)
    return throttle
