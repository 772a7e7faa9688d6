"""The certificate life under random faults: it ends in order, and no step makes a served certificate untrusted."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

from hypothesis import example, given, settings
from hypothesis import strategies as st

from certs.controller.reconciler import Memory
from certs.inspection import Artifacts, read_key_material
from certs.pki import SERVER_VALIDITY, issue_ca, issue_server
from certs.plan import Action, Request
from tests.support.effort import examples
from tests.support.tls.certificate_world import RULES, World
from tests.support.tls.certificates import NOW, OTHER

Move = tuple[str, int]

FIELDS = ("ca_certificate", "ca_key", "certificate", "key")
LONGEST_REQUEST = timedelta(seconds=7)
PAUSES = [timedelta(seconds=each) for each in (1, 7, 15, 60, 900)] + [timedelta(days=each) for each in (31, 250, 3000)]


def registered() -> Artifacts:
    """Return what `certs register` leaves: the key of the CA is nowhere."""
    ca = issue_ca(now=NOW, validity=SERVER_VALIDITY)
    server = issue_server(ca, dns_names=RULES.names.dns_names, now=NOW)
    return Artifacts(ca.certificate, None, server.certificate, server.key)


def make(world: World, move: Move) -> None:
    """Let one thing happen: a controller reads or writes, time passes, or something breaks."""
    what, number = move
    controller = world.controllers[number % 2]
    if what == "read":
        world.look(controller)
    elif what == "write":
        world.write(controller)
    elif what == "pass":
        world.look(controller)
        world.write(controller)
    else:
        pause = PAUSES[number % len(PAUSES)] if what == "pause" else timedelta(0)
        if what != "pause" or pause > LONGEST_REQUEST:
            # A controller writes within seconds of its reads. A fault between them can be undone by no order of writes.
            for each in world.controllers:
                each.read = None
        world.now += pause
        if what in FAULTS:
            FAULTS[what](world, number)


def restart(world: World, number: int) -> None:
    world.controllers[number % 2].memory = Memory()


def delete(world: World, _: int) -> None:
    world.store(None)


def change_field(world: World, number: int) -> None:
    """Let one field of the Secret be lost, unreadable, or of another installation."""
    if world.secret.artifacts is not None:
        name = FIELDS[number % 4]
        content = (None, b"?", getattr(OTHER, name))[number % 3]
        world.store(replace(world.secret.artifacts, **{name: content}), world.secret.requested)


def restore(world: World, number: int) -> None:
    if world.secrets_were:
        world.store(world.secrets_were[number % len(world.secrets_were)].artifacts)


def request(world: World, number: int) -> None:
    if world.secret.artifacts is not None:
        world.store(world.secret.artifacts, list(Request)[number % 2])


def wipe(world: World, _: int) -> None:
    """Let the manifest be applied again, without caBundle."""
    world.trust(tuple(() for _ in world.bundles), by_controller=False)


def edit(world: World, number: int) -> None:
    """Take the first CA from one caBundle."""
    if world.bundles:
        edited = list(world.bundles)
        edited[number % len(edited)] = edited[number % len(edited)][1:]
        world.trust(tuple(edited), by_controller=False)


def configure(world: World, _: int) -> None:
    world.trust(world.bundles or ((), (), ()), by_controller=False)


FAULTS: dict[str, Callable[[World, int], None]] = {
    "restart": restart,
    "delete": delete,
    "change a field": change_field,
    "restore": restore,
    "request": request,
    "wipe": wipe,
    "edit": edit,
    "configure": configure,
}
MOVES = st.lists(
    st.tuples(
        st.sampled_from(["pass", "read", "write", "pause"]) | st.sampled_from(sorted(FAULTS)), st.integers(0, 11)
    ),
    max_size=40,
)
TAKES_OVER = st.booleans()


def begun(*, takes_over: bool) -> World:
    """Return an empty cluster, or one in which `certs register` was run."""
    world = World()
    if takes_over:
        held = registered()
        world.store(held)
        world.trust((read_key_material(held, NOW).cas,) * 3, by_controller=False)
    return world


@given(MOVES, TAKES_OVER)
@example([("read", 0), ("write", 0), ("pause", 2), ("read", 0), ("write", 0)], True)
@settings(max_examples=examples(40))
def test_no_step_makes_a_served_certificate_untrusted_and_all_end_in_order(moves: list[Move], takes_over: bool) -> None:
    world = begun(takes_over=takes_over)
    for move in moves:
        make(world, move)
        assert world.broken == []

    last = world.settle()

    assert world.broken == []
    assert last.action is Action.KEEP
    keys = read_key_material(world.secret.artifacts or Artifacts(), world.now)
    assert keys.signer is not None
    assert keys.issuer == keys.signer
    assert keys.cas == last.ca_bundle == (keys.signer,)
    world.now += RULES.propagation_wait
    assert world.served() == [keys.pair.server]
    assert world.trusted() == {keys.pair.server}
