"""Simulate 64 ranks that wait for all gradients or for fewer, as dba3c bench predict does, three times, as JSON."""

import json

import numpy as np

from dba3c.benchmarks.emulated_ranks import STEPS, Pattern, simulate

RANKS = 64
BACKUP = (0, 1, 3, 6, 13)  # ranks that an update does not wait for: 0, 2, 5, 9 and 20 %
SLOW = Pattern(0.08, delayed=0.1, delay=5.0)  # a gradient takes 80 ms; a tenth of its steps takes five times as long
MESSAGE_SECONDS = 0.005


def updates_per_second(n_backup: int, seed: int) -> float:
    random = np.random.default_rng(seed)
    return simulate(RANKS, n_backup, lambda _: SLOW.segments(RANKS)(random), MESSAGE_SECONDS, updates=300)


if __name__ == "__main__":
    rows = [{"n_backup": n, "updates_per_second": [updates_per_second(n, seed) for seed in range(3)]} for n in BACKUP]
    print(json.dumps({"ranks": RANKS, "steps": STEPS, "rows": rows}, indent=1))
