"""The console: a read-only web page about a cluster, and the same pages as one file.

`application` serves the pages on loopback, `report_file` writes them into a file. A page has two parts:

- `pages/NAME.py` with `endpoints(sources)`, which returns the `Endpoint`s of its JSON, in the list of `application.py`.
  An endpoint returns data that `orjson` writes, and raises `InvalidInput` for what a user gave. It sends the texts of
  tenants as they are: the front end writes them as text nodes.
- `static/NAME/page.js` that exports a page object, in the list of `static/pages.js`. `static/README.md` describes it.
"""
