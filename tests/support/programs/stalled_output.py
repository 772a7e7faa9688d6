"""A process that prints more records than a pipe holds; started by test_writer, which does not read them."""

from tests.support.programs.audit_records import make_record
from webhook.audit.writer import AuditWriter


def main() -> None:
    results: list[str] = []
    with AuditWriter("-", on_result=results.append) as writer:
        while results.count("failed") < 200:
            writer.write(make_record(len(results)))


if __name__ == "__main__":
    main()
