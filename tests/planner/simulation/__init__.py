"""The simulation of a trace."""
