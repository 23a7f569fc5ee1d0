"""Samples/s over the number of servers, measured and predicted, over links of 100 Mbit/s between 16 hosts. As root:

DBA3C_CLUSTER_NODES=16 python -m tests.cluster.servers docs/servers     (make validate)

Computing is emulated, so that two cores can play 16 hosts; messages are real: dba3c bench servers under srun.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

from dba3c.benchmarks import launching, servers
from dba3c.benchmarks.emulated_ranks import Pattern
from dba3c.benchmarks.prediction.links import Link, allreduce_seconds
from dba3c.benchmarks.servers import Costs, simulate_served
from dba3c.types import Json
from tests.cluster import slurm

RATE = "100mbit"
LINK = Link(latency=50e-6, bandwidth=0.94 * 100e6 / 8)
MESSAGE_BYTES = 4 * servers.PARAMETERS


def predicted(row: Json) -> float:
    """Samples/s: gradients queue for their worker's link and for those of the servers, which answer slice by slice."""
    if not row["servers"]:
        message = allreduce_seconds(row["workers"], LINK, MESSAGE_BYTES)
        return float(row["workers"] * servers.SAMPLES / (servers.SECONDS_PER_GRADIENT + message))
    sending = MESSAGE_BYTES / LINK.bandwidth
    costs = Costs(sending, sending / row["servers"], sending / row["servers"])
    pace = simulate_served(row["workers"], 1, Pattern(servers.SECONDS_PER_GRADIENT).draw, costs)
    return pace.updates_per_second * servers.SAMPLES


def main(out: Path) -> int:
    slurm.up()
    try:
        slurm.shape(RATE)
        hosts, file = str(len(slurm.NODES)), slurm.FOLDER / "servers.json"
        words = (sys.executable, "-m", "dba3c.bench", "servers", "--seconds=12", f"--json={file}")
        result = slurm.command("srun", "--mpi=pmix", "-N", hosts, "-n", hosts, *words, seconds=600)
        assert result.returncode == 0, result.stderr
        found: Json = json.loads(file.read_text(encoding="utf-8"))
    finally:
        slurm.down()
    for row in found["rows"]:
        row["predicted"] = predicted(row)
    launching.show(servers.table(found))
    errors = [abs(np.log(row["predicted"] / row["samples_per_second"])) for row in found["rows"]]
    print(f"largest error of the prediction {max(errors):.0%}")
    out.with_suffix(".json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    servers.plot(found, out.with_suffix(".png"))
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
