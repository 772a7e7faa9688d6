"""Builders, fakes and runners that tests of several packages share."""
