"""Tests of the classes of held cards."""
