"""Measurements of speed: one file each."""
