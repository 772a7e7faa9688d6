"""A process whose audit file may not grow beyond a size, as on a full disk; started by test_writer.

Writes records until some are refused, lifts the limit and writes one more; with a third argument, it ends before that.
Prints the results of `on_result`.
"""

import resource
import sys

from tests.support.programs.audit_records import make_record
from webhook.audit.writer import AuditWriter


def main(path: str, limit_bytes: int, ends: str = "") -> None:
    results: list[str] = []
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    with AuditWriter(path, on_result=results.append) as writer:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit_bytes, hard))
        while results.count("failed") < 3:
            writer.write(make_record(len(results)))
        if ends:
            return
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
        writer.write(make_record(len(results)))
    sys.stdout.write(" ".join(results))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), *sys.argv[3:])
