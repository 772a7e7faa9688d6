"""The command `simulate`: a trace of pods in virtual time, by policy and scheduler profile."""

from placement_planner.cli.simulate.simulate_command import simulate

__all__ = ["simulate"]
