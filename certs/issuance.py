"""Issue the certificates of a directory, in memory. Pure; `certs.store.directory` reads and writes."""

from dataclasses import dataclass
from datetime import datetime

from certs.inspection import Artifacts, inspect
from certs.names import ServerNames
from certs.pki import KeyPair, issue_ca, issue_server
from certs.plan import Action, plan
from webhook.kube.field import FieldError, InvalidInput


@dataclass(frozen=True, slots=True)
class Issuance:
    """The action with its reasons, and the files to write; none for the action KEEP."""

    action: Action
    reasons: tuple[str, ...]
    artifacts: Artifacts


def issue(held: Artifacts, names: ServerNames, now: datetime, *, replace: bool, keep_ca_key: bool) -> Issuance:
    """Return what a directory that holds `held` needs to serve `names`; `replace` issues new files in any case.

    Raises:
        InvalidInput: the files were not issued by this tool, or their CA cannot sign any more; lists all obstacles.
    """
    todo = plan(inspect(held, now), now, names=names, replace=replace)
    if todo.action is Action.REFUSE:
        remedy = "--force replaces all four files, after which `certs register` has to be run again"
        raise InvalidInput(
            FieldError(error.path, error.reason, error.value, f"{error.detail}; {remedy}") for error in todo.obstacles
        )
    return Issuance(todo.action, todo.reasons, _artifacts(todo.action, held, names, now, keep_ca_key=keep_ca_key))


def _artifacts(action: Action, held: Artifacts, names: ServerNames, now: datetime, *, keep_ca_key: bool) -> Artifacts:
    if action is Action.KEEP:
        return Artifacts()
    renews = action is Action.RENEW
    ca = KeyPair(held.ca_certificate or b"", held.ca_key or b"") if renews else issue_ca(now=now)
    server = issue_server(ca, dns_names=names.dns_names, ip_addresses=map(str, names.ip_addresses), now=now)
    return Artifacts(
        ca_certificate=None if renews else ca.certificate,
        ca_key=None if renews or not keep_ca_key else ca.key,
        certificate=server.certificate,
        key=server.key,
    )
