"""Before any simulator starts: ranks that run different programs are named, and the layout is shown."""

from __future__ import annotations

import pytest

from dba3c.config.messages import ConfigError
from dba3c.envs import fingerprint
from dba3c.job import handshake
from dba3c.job.cores import UNLIMITED, Place
from tests.fakes.settings import settings

FACTS = {"TensorFlow": "2.21", "env.n_sim": "16"}
HOSTS = ["a", "a", "b", "b"]


def test_equal_ranks_pass() -> None:
    handshake.refuse_differences([dict(FACTS) for _ in range(4)], HOSTS)


def test_the_rank_that_differs_is_named_with_both_values() -> None:
    with pytest.raises(ConfigError, match=r"TensorFlow: 2\.21 on ranks 0-2, 2\.20 on rank 3 \(b\);"):
        handshake.refuse_differences([FACTS, FACTS, FACTS, FACTS | {"TensorFlow": "2.20"}], HOSTS)


def test_a_fact_that_only_some_know_counts_as_a_difference() -> None:
    with pytest.raises(ConfigError, match=r"comm\.new: missing on ranks 0, 2-3, 5 on rank 1 \(a\)"):
        handshake.refuse_differences([FACTS, FACTS | {"comm.new": "5"}, FACTS, FACTS], HOSTS)


def test_many_differences_stay_readable() -> None:
    many = {f"key{number}": "x" for number in range(30)}
    with pytest.raises(ConfigError, match="and 26 more"):
        handshake.refuse_differences([many, dict.fromkeys(many, "y")], ["a", "b"])


def test_what_is_compared() -> None:
    facts = handshake.facts(settings(), fingerprint(settings().env))
    assert facts["TensorFlow"].startswith("2.")
    assert len(facts["the ROM of breakout"]) == 16
    assert facts["the ROM of breakout"] != fingerprint(settings("env.game=pong").env)["the ROM of pong"]
    assert facts["algorithm.gamma"] == "0.99"
    assert "not installed" not in facts.values()


def test_layout_puts_hosts_that_are_alike_in_one_row() -> None:
    places = [Place(host, [core], UNLIMITED) for host in ("a", "b") for core in (0, 1)] + [
        Place("c", [0, 1], UNLIMITED)
    ]
    heading, pair, single = handshake.layout(places, 16)
    assert heading.split() == ["hosts", "ranks", "each", "cores", "per", "rank", "simulators", "per", "rank"]
    assert pair.split() == ["2", "2", "1", "16", "a,", "b"]
    assert single.split() == ["1", "1", "2", "16", "c"]


def test_layout_of_many_hosts_names_some() -> None:
    _, row = handshake.layout([Place(f"node{number}", [0], UNLIMITED) for number in range(64)], 10)
    assert row.split()[:2] == ["64", "1"]
    assert row.endswith("and 58 more")


def test_ranks_on_one_core_are_reported_once_per_host() -> None:
    crowded = [Place("a", [0], UNLIMITED)] * 3 + [Place("b", [0], UNLIMITED)]
    warnings = handshake.crowded(crowded)
    assert len(warnings) == 1
    assert warnings[0].startswith("a: rank 0 shares its core with other ranks (0.33 of a core")
    assert handshake.crowded(crowded, [3, 5, 6, 7])[0].startswith("a: rank 3 shares")  # others have failed
    assert not handshake.crowded([Place("a", [0, 1], UNLIMITED)] * 2)  # not bound, but a core for each


def test_ranks_bound_to_one_of_many_cores_are_reported_once() -> None:
    bound = [Place(host, [0], UNLIMITED, 12) for host in ("a", "b")]
    (warning,) = handshake.idle(bound)
    assert "on a (1 of 12 cores in use), b (1 of 12 cores in use)" in warning
    assert "SRUN_CPUS_PER_TASK" in warning
    assert warning in handshake.layout(bound, 16)


def test_ranks_that_use_what_there_is_are_not_reported() -> None:
    assert not handshake.idle([Place("a", [core], UNLIMITED, 12) for core in range(12)])
    assert not handshake.idle([Place("a", [0], UNLIMITED, 1)])  # all that Slurm or the container gives
    assert not handshake.idle([Place("a", [0, 1, 2], UNLIMITED, 12)])  # somebody chose three
    assert not handshake.idle([Place("a", [0], UNLIMITED)])  # nothing is known about the host
