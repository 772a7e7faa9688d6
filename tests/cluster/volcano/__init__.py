"""Tests of the HyperNodes of Volcano."""
