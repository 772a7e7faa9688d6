"""The audit log: one JSON record an admission, chained by hashes.

To write: `record` has the fields, `bounds` truncates them, `lines` renders the line, and `writer` chains the lines.
`file` appends them, with its `rotation` and `head`, or prints them.

To read: `reading` reads the lines of one file, `sources` those of files and replicas together.
`chain` verifies them, `selection` filters, `summary` counts, and `field_changes` shows what a patch changed.
"""
