"""Networks between nodes: names, what a message meets there, and how long an all-reduce takes."""

from __future__ import annotations

import math
from argparse import ArgumentTypeError
from typing import NamedTuple


class Link(NamedTuple):
    """What a message meets between two nodes."""

    latency: float  # seconds, software included
    bandwidth: float  # bytes per second that a program sees


LINKS = {  # 94 % of the line is left after Ethernet, IP and TCP headers; latencies of TCP, and of RDMA for 100g
    "1g": Link(50e-6, 0.94 * 1e9 / 8),
    "10g": Link(30e-6, 0.94 * 10e9 / 8),
    "100g": Link(5e-6, 0.94 * 100e9 / 8),
}


def known_links(text: str) -> list[str]:
    """Read names of links, with commas between them."""
    names = text.split(",")
    if unknown := [name for name in names if name not in LINKS]:
        raise ArgumentTypeError(f"{unknown[0]}: not one of {', '.join(LINKS)}")
    return names


def allreduce_seconds(nodes: int, link: Link, size: float) -> float:
    """Time reduce-scatter and all-gather by halving and doubling (Rabenseifner), as MPI libraries do at this size."""
    if nodes == 1:
        return 0.0
    rounds = 2 * math.ceil(math.log2(nodes))
    return rounds * link.latency + 2 * (nodes - 1) / nodes * size / link.bandwidth
