"""A real Slurm cluster on one machine: a head and four nodes as network namespaces, each with its own daemon.

Every checkout has its own, with networks of its own that nothing leaves: what they would share, names of namespaces,
folders and numbers of jobs, comes from the checkout's path.

python -m tests.cluster.slurm up | down | why-not     (make cluster-up, make cluster-down)
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CHECKOUT = hashlib.sha256(os.fsencode(ROOT)).hexdigest()[:8]
HEAD = "head"
NODES = tuple(f"node{number}" for number in range(1, 1 + int(os.environ.get("DBA3C_CLUSTER_NODES", "4"))))
HOSTS = {HEAD: "10.77.0.254"} | {name: f"10.77.0.{number}" for number, name in enumerate(NODES, 1)}
BRIDGE = f"dba3c-{CHECKOUT}-bridge"
FOLDER = Path(f"/tmp/dba3c-cluster-{CHECKOUT}")
FIRST_JOB = 1 + 1000 * (int(CHECKOUT, 16) % 60_000)  # MPI names shared memory after host and job
PROGRAMS = ("slurmctld", "slurmd", "srun", "sbatch", "munged", "ip", "nsenter", "unshare")
CPUS_PER_NODE = 4  # pretended; the machine has what it has

SLURM_CONF = f"""
ClusterName=dba3c
FirstJobId={FIRST_JOB}
SlurmctldHost={HEAD}({HOSTS[HEAD]})
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={FOLDER}/munge/socket,cred_expire=5
StateSaveLocation={FOLDER}/state
SlurmdSpoolDir={FOLDER}/spool/%n
SlurmctldPidFile={FOLDER}/slurmctld.pid
SlurmdPidFile={FOLDER}/slurmd-%n.pid
SlurmctldLogFile={FOLDER}/log/head.log
SlurmdLogFile={FOLDER}/log/%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/affinity
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
ReturnToService=2
KillWait=5
SlurmdTimeout=600
{chr(10).join(f"NodeName={name} NodeAddr={HOSTS[name]} CPUs={CPUS_PER_NODE}" for name in NODES)}
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""
PRIVATE = ("pmix", "local")  # folders of which each node sees its own; local: as the disk of a node
MPI_CONF = f"PMIxCliTmpDirBase={FOLDER}/pmix\n"


class ClusterError(Exception):
    """The cluster could not be brought up."""


def why_not() -> str | None:
    """What this machine lacks for a cluster, if anything."""
    missing = [name for name in PROGRAMS if shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin:/sbin") is None]
    if missing:
        return f"not installed: {', '.join(missing)} (make cluster-packages)"
    return None if os.geteuid() == 0 else "network namespaces need root"


def sh(*words: str) -> str:
    result = subprocess.run(words, capture_output=True, text=True, check=False)
    if result.returncode:
        raise ClusterError(f"{' '.join(words)}: {result.stdout}{result.stderr}")
    return result.stdout


def namespace(host: str) -> str:
    return f"dba3c-{CHECKOUT}-{host}"


def inside(host: str) -> list[str]:
    """The words that run a command in a host's network. Not `ip netns exec`, which hides the cgroups from slurmd."""
    return ["nsenter", f"--net=/run/netns/{namespace(host)}"]


def environment() -> dict[str, str]:
    """What a user of the cluster has in the environment."""
    root = {
        name: "1"
        for who in ("OMPI", "PRTE")
        for name in (f"{who}_ALLOW_RUN_AS_ROOT", f"{who}_ALLOW_RUN_AS_ROOT_CONFIRM")
    }
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("OMPI_", "PRTE_", "PMIX_", "SLURM_"))
    }
    # Ranks that wait must leave the cores to the others: here, unlike on real nodes, all share a few.
    shared = {"OMPI_MCA_mpi_yield_when_idle": "1", "SLURM_CPU_BIND": "none"}  # or all nodes would use core 0
    return kept | root | shared | {"SLURM_CONF": str(FOLDER / "slurm.conf")}


def up() -> None:
    """Networks, then daemons; returns when all nodes are idle."""
    if (reason := why_not()) is not None:
        raise ClusterError(reason)
    down()
    try:
        write_files()
        connect()
        start_daemons()
        wait_until_idle()
    except BaseException:
        down()
        raise


def write_files() -> None:
    private = [f"{place}-{node}" for place in PRIVATE for node in NODES]
    for name in ("state", "log", "munge", *(f"spool/{node}" for node in NODES), *PRIVATE, *private):
        (FOLDER / name).mkdir(parents=True, mode=0o755)
    (FOLDER / "slurm.conf").write_text(SLURM_CONF, encoding="ascii")
    (FOLDER / "mpi.conf").write_text(MPI_CONF, encoding="ascii")
    hosts = "127.0.0.1 localhost\n" + "".join(f"{address} {name}\n" for name, address in HOSTS.items())
    (FOLDER / "hosts").write_text(hosts, encoding="ascii")
    key = FOLDER / "munge" / "key"
    key.write_bytes(os.urandom(1024))
    key.chmod(0o400)


def connect() -> None:
    """One namespace per host, all on one bridge that lives in a namespace of its own."""
    sh("ip", "netns", "add", BRIDGE)
    sh("ip", "-n", BRIDGE, "link", "add", "br0", "type", "bridge")
    sh("ip", "-n", BRIDGE, "link", "set", "br0", "up")
    for host, address in HOSTS.items():
        place = namespace(host)
        sh("ip", "netns", "add", place)
        sh("ip", "-n", place, "link", "set", "lo", "up")
        sh("ip", "link", "add", "eth0", "netns", place, "type", "veth", "peer", "name", host, "netns", BRIDGE)
        sh("ip", "-n", BRIDGE, "link", "set", host, "master", "br0", "up")
        sh("ip", "-n", place, "address", "add", f"{address}/24", "dev", "eth0")
        sh("ip", "-n", place, "link", "set", "eth0", "up")


def start_daemons() -> None:
    munge = FOLDER / "munge"
    sh(
        "munged", "--force", f"--key-file={munge}/key", f"--socket={munge}/socket", f"--pid-file={munge}/pid",
        f"--log-file={munge}/log", f"--seed-file={munge}/seed",
    )  # fmt: skip
    start(HEAD, f"exec slurmctld -D -f {FOLDER}/slurm.conf")
    for node in NODES:
        private = "".join(f"mount --bind {FOLDER}/{place}-{node} {FOLDER}/{place}; " for place in PRIVATE)
        start(node, f"{private}exec slurmd -D -N {node} -f {FOLDER}/slurm.conf")


def start(host: str, command: str) -> None:
    """A daemon with the host's network, its name and its table of hosts."""
    script = f"hostname {host}; mount --bind {FOLDER}/hosts /etc/hosts; {command}"
    log = (FOLDER / "log" / f"{host}.start").open("w", encoding="utf-8")
    words = [*inside(host), "unshare", "--mount", "--uts", "sh", "-c", script]
    process = subprocess.Popen(
        words, stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True, env=environment()
    )
    (FOLDER / f"{host}.started").write_text(str(process.pid), encoding="ascii")


def wait_until_idle(seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while True:
        result = command("sinfo", "--noheader", "--format=%D %t")
        if result.stdout.split() == [str(len(NODES)), "idle"]:
            return
        if time.monotonic() > end:
            logs = "".join(f"{f.name}: {f.read_text(errors='replace')[-600:]}\n" for f in (FOLDER / "log").iterdir())
            raise ClusterError(f"the nodes do not come up: {result.stdout}{result.stderr}\n{logs}")
        time.sleep(0.3)


def shape(rate: str) -> None:
    """Limit what every host sends, in tc's words for bits per second. (Delays need netem, which kernels may lack.)"""
    for host in HOSTS:
        limit = ("root", "tbf", "rate", rate, "burst", "256kb", "latency", "100ms")
        sh("tc", "-n", namespace(host), "qdisc", "replace", "dev", "eth0", *limit)


def link(host: str, state: str) -> None:
    """Take a host off the network, `down`, or put it back, `up`."""
    sh("ip", "-n", BRIDGE, "link", "set", host, state)


def trainings(host: str) -> list[int]:
    """Processes of trainings on a host."""
    pids = map(int, sh("ip", "netns", "pids", namespace(host)).split())
    return [pid for pid in pids if b"dba3c.train" in read(Path(f"/proc/{pid}/cmdline"))]


def read(path: Path) -> bytes:
    with contextlib.suppress(OSError):
        return path.read_bytes()
    return b""


def as_user(*words: str) -> list[str]:
    """The words that run a command on the head."""
    return [*inside(HEAD), "unshare", "--uts", "sh", "-c", f'hostname {HEAD}; exec "$@"', "sh", *words]


def command(*words: str, seconds: float = 120.0, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a command of a user on the head."""
    return subprocess.run(
        as_user(*words),
        env=environment() | variables,
        capture_output=True,
        text=True,
        check=False,
        timeout=seconds,
    )


def down() -> None:
    """End everything that runs in the cluster's networks and take them away."""
    existing = sh("ip", "netns", "list").split() if shutil.which("ip") else []
    for place in [namespace(host) for host in HOSTS if namespace(host) in existing]:
        end_all(place)
    with contextlib.suppress(OSError, ValueError):
        os.kill(int((FOLDER / "munge" / "pid").read_text(encoding="ascii")), signal.SIGTERM)
    for place in [name for name in (*map(namespace, HOSTS), BRIDGE) if name in existing]:
        sh("ip", "netns", "delete", place)
    shutil.rmtree(FOLDER, ignore_errors=True)


def end_all(place: str) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        for pid in sh("ip", "netns", "pids", place).split():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), number)
        end = time.monotonic() + 5
        while sh("ip", "netns", "pids", place).split() and time.monotonic() < end:
            time.sleep(0.05)


HOW_TO = f"""{len(NODES)} nodes are up; a shell on the head:
  {" ".join(inside(HEAD))} env SLURM_CONF={FOLDER}/slurm.conf bash
there, for instance: sinfo; srun --mpi=pmix -N4 -n4 .venv/bin/python -m dba3c.train; sbatch slurm/train.sbatch
at the end: make cluster-down"""


def main(action: str) -> int:
    try:
        if action == "why-not":
            print(why_not() or "nothing is missing")
        elif action == "down":
            down()
        else:
            up()
            print(HOW_TO)
    except ClusterError as error:
        print(f"dba3c cluster: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
