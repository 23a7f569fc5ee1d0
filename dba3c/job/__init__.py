"""One process among the ranks of a job: start, cores, signals, exit codes, command line."""
