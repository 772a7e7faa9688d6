"""Report cards that are held and not used: who holds them, since when, what frees them, and which pods start then.

`cluster` has the objects that are read, `held` a row of the report. `classes` finds the rows, `report` selects those
to print or evict, and `effects` asks what starts without the held pods: these three are pure.
"""
