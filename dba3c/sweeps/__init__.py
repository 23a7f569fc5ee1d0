"""Many trainings from one small file: games × settings × seeds."""
