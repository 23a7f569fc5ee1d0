"""Published scores of random play, human testers and other systems, with their sources."""

from __future__ import annotations

from typing import NamedTuple

# Game → score of random play, score of a professional human tester; up to 30 no-ops at the start, episodes of at most
# 30 minutes. Source: Wang et al. 2016, "Dueling network architectures for deep reinforcement learning"
# (arXiv:1511.06581), Table 2, which extends the table of Mnih et al. 2015 to 57 games.
RANDOM_HUMAN: dict[str, tuple[float, float]] = {
    "alien": (227.8, 7127.7), "amidar": (5.8, 1719.5), "assault": (222.4, 742.0), "asterix": (210.0, 8503.3),
    "asteroids": (719.1, 47388.7), "atlantis": (12850.0, 29028.1), "bank_heist": (14.2, 753.1),
    "battle_zone": (2360.0, 37187.5), "beam_rider": (363.9, 16926.5), "berzerk": (123.7, 2630.4),
    "bowling": (23.1, 160.7), "boxing": (0.1, 12.1), "breakout": (1.7, 30.5), "centipede": (2090.9, 12017.0),
    "chopper_command": (811.0, 7387.8), "crazy_climber": (10780.5, 35829.4), "defender": (2874.5, 18688.9),
    "demon_attack": (152.1, 1971.0), "double_dunk": (-18.6, -16.4), "enduro": (0.0, 860.5),
    "fishing_derby": (-91.7, -38.7), "freeway": (0.0, 29.6), "frostbite": (65.2, 4334.7), "gopher": (257.6, 2412.5),
    "gravitar": (173.0, 3351.4), "hero": (1027.0, 30826.4), "ice_hockey": (-11.2, 0.9), "jamesbond": (29.0, 302.8),
    "kangaroo": (52.0, 3035.0), "krull": (1598.0, 2665.5), "kung_fu_master": (258.5, 22736.3),
    "montezuma_revenge": (0.0, 4753.3), "ms_pacman": (307.3, 6951.6), "name_this_game": (2292.3, 8049.0),
    "phoenix": (761.4, 7242.6), "pitfall": (-229.4, 6463.7), "pong": (-20.7, 14.6), "private_eye": (24.9, 69571.3),
    "qbert": (163.9, 13455.0), "riverraid": (1338.5, 17118.0), "road_runner": (11.5, 7845.0), "robotank": (2.2, 11.9),
    "seaquest": (68.4, 42054.7), "skiing": (-17098.1, -4336.9), "solaris": (1236.3, 12326.7),
    "space_invaders": (148.0, 1668.7), "star_gunner": (664.0, 10250.0), "surround": (-10.0, 6.5),
    "tennis": (-23.8, -8.3), "time_pilot": (3568.0, 5229.2), "tutankham": (11.4, 167.6), "up_n_down": (533.4, 11693.2),
    "venture": (0.0, 1187.5), "video_pinball": (16256.9, 17667.9), "wizard_of_wor": (563.5, 4756.5),
    "yars_revenge": (3092.9, 54576.9), "zaxxon": (32.5, 9173.3),
}  # fmt: skip
SOURCE = "Wang et al. 2016 (arXiv:1511.06581), Table 2: random play and a professional tester, up to 30 no-ops"


def human_normalised(game: str, score: float) -> float | None:
    """Scale a score to 0 for random play and 1 for the human tester; None for a game without these scores."""
    if game not in RANDOM_HUMAN:
        return None
    random, human = RANDOM_HUMAN[game]
    return (score - random) / (human - random)


class Paper(NamedTuple):
    """One column of a published table of scores."""

    name: str
    hardware: str
    scores: dict[str, tuple[float, float]]  # game → score, hours of training
    caveat: str


DBA3C = Paper(
    "DBA3C",
    "64 nodes × 12 cores",
    {
        "beam_rider": (14900.0, 2.7), "breakout": (350.0, 0.5), "boxing": (98.0, 0.5), "pong": (20.0, 4.0),
        "seaquest": (1832.0, 0.5), "space_invaders": (650.0, 0.5),
    },
    "Adamski et al. 2018 (arXiv:1801.02852), Table 3: the best stable mean of 50 greedy episodes, read from"
    " training curves; gym's -v0 environments (sticky actions, random frame skip; profile `paper` here),"
    " and Pong with a different epsilon",
)  # fmt: skip
GA3C = Paper(
    "GA3C",
    "1 GPU",
    {
        "amidar": (218.0, 24.0), "boxing": (92.0, 24.0), "centipede": (7386.0, 24.0), "name_this_game": (5643.0, 24.0),
        "ms_pacman": (1978.0, 24.0), "pong": (18.0, 24.0), "qbert": (14966.0, 24.0), "seaquest": (1706.0, 24.0),
        "up_n_down": (8623.0, 24.0),
    },
    "Babaeizadeh et al. 2017 (arXiv:1611.06256), Table 3: the mean of 30 episodes of the best agent; Breakout appears"
    " there only as a curve",
)  # fmt: skip
PAAC_NIPS = Paper(
    "PAAC nips",
    "1 GPU, 8 threads",
    {
        "amidar": (701.8, 12.0), "centipede": (5747.32, 12.0), "beam_rider": (4062.0, 12.0), "boxing": (99.6, 12.0),
        "breakout": (470.1, 12.0), "ms_pacman": (2194.7, 12.0), "name_this_game": (9743.7, 12.0), "pong": (20.6, 12.0),
        "qbert": (16561.7, 12.0), "seaquest": (1754.0, 12.0), "space_invaders": (1077.3, 12.0),
        "up_n_down": (88105.3, 12.0),
    },
    "Clemente et al. 2017 (arXiv:1705.04862), Table 1: the best of three actors after 115 million steps, mean of 30"
    " episodes with up to 30 no-ops; actions are sampled",
)  # fmt: skip
PAAC_NATURE = Paper(
    "PAAC nature",
    "1 GPU, 8 threads",
    {
        "amidar": (1348.3, 15.0), "centipede": (7368.1, 15.0), "beam_rider": (6844.0, 15.0), "boxing": (99.8, 15.0),
        "breakout": (565.3, 15.0), "ms_pacman": (1976.0, 15.0), "name_this_game": (14068.0, 15.0), "pong": (20.9, 15.0),
        "qbert": (17249.2, 15.0), "seaquest": (1755.3, 15.0), "space_invaders": (1427.8, 15.0),
        "up_n_down": (100523.3, 15.0),
    },
    "the same with the larger network",
)  # fmt: skip
PAPERS = (DBA3C, GA3C, PAAC_NIPS, PAAC_NATURE)
