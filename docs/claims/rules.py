"""The rules that decide, one for each claim, as texts.yaml words them."""

from collections.abc import Callable

import evidence
import numpy as np
from evidence import Run, Runs

HOLDS, IN_PART, NOT, UNCLEAR = "holds", "holds in part", "does not hold here", "cannot be shown here"


def median_steps(runs: list[Run], score: float = 0.5) -> float:
    return float(np.median([run.steps_to(score) for run in runs]))


def most(runs: list[Run], what: Callable[[Run], bool]) -> bool:
    """Whether something is true of more than half of the seeds."""
    return sum(map(what, runs)) > len(runs) / 2


def failed(run: Run) -> bool:
    return run.collapsed or run.end < 0.5


def asynchronous(runs: Runs) -> str:
    if any(map(failed, runs["sync64"])):
        return NOT
    if most(runs["async64"], failed):
        return HOLDS
    return IN_PART if median_steps(runs["async64"]) >= 2 * median_steps(runs["async1"]) else NOT


def doubled_rate(runs: Runs) -> str:
    return HOLDS if most(runs["rate0.002"], failed) and not any(map(failed, runs["rate0.001"])) else NOT


def epsilon(runs: Runs) -> str:
    small, large = (median_steps(runs[f"batch{n}_1e.8"]) / median_steps(runs[f"batch{n}_1e.3"]) for n in (32, 512))
    return HOLDS if large <= 2 / 3 < small else IN_PART if large <= 2 / 3 else NOT


def large_batch(_: Runs) -> str:
    runs = evidence.batches()
    ratio = median_steps(runs[2048], 0.9) / median_steps(runs[32], 0.9)
    return HOLDS if ratio <= 2 else NOT


def hidden_units(_: Runs) -> str:
    few, *_, many = evidence.hidden().values()
    return HOLDS if min(few) > max(many) else NOT


def servers(_: Runs) -> str:
    pace = {count: samples for count, (samples,) in evidence.servers().items()}
    return HOLDS if pace["4"] >= 3 * pace["1"] and pace["8"] <= 1.5 * pace["4"] else NOT


SLOW = "one rank 3 × slower: "


def backup(_: Runs) -> str:
    pace = evidence.paces(("allreduce", "backup 1"))
    return HOLDS if max(pace[f"{SLOW}allreduce"]) < 0.5 and min(pace[f"{SLOW}backup 1"]) > 0.9 else NOT


def most_of_64(_: Runs) -> str:
    paces = evidence.waiting()
    everyone, most_ = paces["waiting for 64 of 64"], paces["waiting for 58 of 64"]
    faster, more = min(most_) >= 1.2 * max(everyone), min(most_) * 58 >= max(everyone) * 64
    return HOLDS if faster and more else IN_PART if faster else NOT


def no_waiting(_: Runs) -> str:
    return HOLDS if min(evidence.paces(("server 1",))[f"{SLOW}server 1"]) > 0.8 else NOT


def proportional_rate(runs: Runs) -> str:
    needed = [median_steps(runs[name]) for name in ("n32", "n128")]
    similar, diverges = max(needed) <= 1.5 * min(needed), most(runs["n256"], failed)
    return HOLDS if similar and diverges else IN_PART if similar or diverges else NOT


def minimum_batch(runs: Runs) -> str:
    small, middle, large = (runs[f"batch{n}"] for n in (5, 40, 160))
    faster = median_steps(middle) < median_steps(small) and median_steps(middle) < median_steps(large)
    steadier = min(run.end for run in middle) > min(run.end for run in small)
    return HOLDS if faster and steadier else IN_PART if faster or steadier else NOT


def finite_logarithm(_: Runs) -> str:
    bad = [label for label, values in evidence.gradients().items() if np.isnan(values).any()]
    return HOLDS if bad and not any("ε" in label for label in bad) else NOT


def log_epsilon(runs: Runs) -> str:
    if any(run.skipped for run in runs["with_0.03"]):
        return NOT
    return HOLDS if any(run.skipped for run in runs["plain_0.03"]) else UNCLEAR


def long_returns(runs: Runs) -> str:
    return HOLDS if median_steps(runs["n_step_q"]) <= 2 / 3 * median_steps(runs["one_step_q"]) else NOT


def actor_critic(runs: Runs) -> str:
    best = min(median_steps(runs["one_step_q"]), median_steps(runs["n_step_q"]))
    return HOLDS if median_steps(runs["a3c"]) < best else NOT


def memory(runs: Runs) -> str:
    without, cells = ([run.end for run in runs[name]] for name in ("feedforward", "lstm"))
    return HOLDS if max(without) < 0.3 and min(cells) > 0.8 else IN_PART if min(cells) > max(without) else NOT


def worse_without(part: str) -> Callable[[Runs], str]:
    """Return the rule that every seed with both ends above every seed that lacks one part."""
    return lambda runs: HOLDS if min(run.end for run in runs["both"]) > max(run.end for run in runs[part]) else NOT


def outliers(runs: Runs) -> str:
    kept, dropped = ([run.end for run in runs[name]] for name in ("accepted", "rejected"))
    return HOLDS if min(dropped) > max(kept) else NOT


def weights(_: Runs) -> str:
    (found,) = evidence.measured("d8.json")
    return HOLDS if all(row["weights"] == row["paper"] for row in found["rows"]) else NOT


RULES: dict[str, Callable[[Runs], str]] = {
    "D1": asynchronous,
    "D2": doubled_rate,
    "D3": epsilon,
    "D4": hidden_units,
    "D5": servers,
    "D6": backup,
    "D7": no_waiting,
    "D8": weights,
    "D9": large_batch,
    "D10": most_of_64,
    "G1": minimum_batch,
    "G2": finite_logarithm,
    "G3": log_epsilon,
    "P2": proportional_rate,
    "A1": long_returns,
    "A4": actor_critic,
    "A5": memory,
    "R1": worse_without("no_replay"),
    "R2": worse_without("no_target"),
    "R3": outliers,
}
