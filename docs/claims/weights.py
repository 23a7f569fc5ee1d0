"""Count the weights of the network for the hidden units of the paper's Table 2, as JSON."""

import json

from dba3c import api
from dba3c.config import loading
from dba3c.job import process

PAPER = {256: 538_119, 128: 332_295, 64: 229_383, 32: 177_927, 16: 152_199}


def count(hidden: int) -> int:
    from dba3c.training import build

    config = loading.load("paper", [f"model.hidden={hidden}", "env.game=pong"])
    return int(build.agent(config).layout.total)


if __name__ == "__main__":
    process.load_tensorflow(api.threads())
    rows = [{"hidden": hidden, "weights": count(hidden), "paper": paper} for hidden, paper in PAPER.items()]
    print(json.dumps({"rows": rows}, indent=1))
