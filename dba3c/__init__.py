"""Synchronous distributed BA3C: Atari agents trained on CPU clusters with MPI."""

__version__ = "0.2.0"
