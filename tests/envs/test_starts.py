"""Start points: simulators begin where the same seed and actions have led before, each after a way of its own."""

from __future__ import annotations

import numpy as np
import pytest

from dba3c import envs
from dba3c.config import loading
from dba3c.config.messages import ConfigError
from dba3c.config.schema import Env
from dba3c.envs.starts import Start, StartedEnv, decode, encode
from dba3c.types import VectorEnv

POINTS = (Start(seed=3, actions=(0, 0)), Start(seed=4, actions=()), Start(seed=5, actions=(2, 1, 0)))


def catch(*overrides: str) -> Env:
    return loading.load("catch", overrides).env


def one() -> VectorEnv:
    return envs.make(catch(), 1, threads=1)


def test_episodes_begin_at_their_points_and_go_on_from_there() -> None:
    """Points are counted round: the fourth episode starts where the first has."""
    env = StartedEnv(one, 4, POINTS)
    seen = env.reset(np.arange(4))
    alone = []
    for point in (*POINTS, POINTS[0]):
        single = one()
        observation = single.reset(np.array([point.seed]))
        for action in point.actions:
            observation = single.step(np.array([action])).observations
        alone.append((single, observation))
    np.testing.assert_array_equal(seen, np.concatenate([observation for _, observation in alone]))
    step = env.step(np.array([2, 0, 1, 2]))
    steps = [single.step(np.array([action])) for (single, _), action in zip(alone, [2, 0, 1, 2], strict=True)]
    for name in ("observations", "rewards", "ended", "terminal"):
        np.testing.assert_array_equal(getattr(step, name), np.concatenate([getattr(one, name) for one in steps]))
    assert step.ended.tolist() == [False, False, True, False]  # three of the four steps were its way


def test_points_are_written_and_read() -> None:
    assert decode(encode(catch(), POINTS), catch(), "f") == POINTS


@pytest.mark.parametrize(
    "data", [b"", b"{}", b"[1]", b'{"env": {}, "starts": []}', b'{"env": {}, "starts": [{"seed": -1}]}']
)
def test_what_holds_no_points_is_refused(data: bytes) -> None:
    with pytest.raises(ConfigError, match=r"^evaluate\.starts=f: holds no start points; make it with dba3c export"):
        decode(data, catch(), "f")


def test_points_of_another_environment_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"^evaluate\.starts=f: was made with env\.width=5, this evaluation has 7"):
        decode(encode(catch(), POINTS), catch("env.width=7"), "f")


def test_actions_that_there_are_not_and_points_behind_the_end_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"actions that this game is without; it has 3"):
        StartedEnv(one, 1, [Start(seed=0, actions=(3,))])
    with pytest.raises(ConfigError, match=r"behind the end of its episode"):
        StartedEnv(one, 1, [Start(seed=0, actions=(1,) * 4)]).reset(np.arange(1))
