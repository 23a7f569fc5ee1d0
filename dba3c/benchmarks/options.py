"""The command line of the benchmarks."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from pathlib import Path

from dba3c.benchmarks import prediction
from dba3c.config.loading import load
from dba3c.config.messages import ConfigError
from dba3c.config.schema import Config
from dba3c.envs.atari_names import resolve_game
from dba3c.job.command_line import Parser, split_overrides

SECONDS = {"parts": 2.0, "stragglers": 5.0}
KEYS_TOO = "; keys of the configuration may follow: --actor.n_steps=20"
COMMANDS = {
    "parts": "microseconds per step of each part alone, and the steps/s that they allow",
    "pipeline": "steps/s of the real trainer, as a fraction of what its parts allow",
    "peers": "steps/s of the real trainer and of other systems, in turn; installs them below ~/.cache first",
    "scaling": "data points/s and efficiency over rank counts; under mpirun or srun, or alone on all cores" + KEYS_TOO,
    "stragglers": "updates/s with slow and delayed ranks, with and without backup workers; computing is emulated",
    "predict": "time per update and efficiency on more nodes than are at hand, and the best n_backup" + KEYS_TOO,
}


def parse(argv: list[str]) -> Namespace:
    """The options; what is not one of them is a key of the configuration, where that makes sense."""
    options, rest = parser().parse_known_args(argv)
    if rest and options.command not in ("predict", "scaling"):
        raise ConfigError(f"{rest[0]}: not understood; see --help")
    options.overrides = split_overrides(rest)
    if "game" in options:
        options.game = resolve_game(options.game, "--game")
    if "preset" in options:
        check_overrides(load(options.preset, options.overrides))
    return options


def check_overrides(config: Config) -> None:
    """Refuse what would have no effect."""
    if config.comm.transport != "mpi":
        raise ConfigError(
            f"comm.transport={config.comm.transport}: is not used here, as only mpi can divide the ranks;"
            " bench scaling compares the transports at its end"
        )


def parser() -> Parser:
    parser = Parser(prog="dba3c bench", description="Measure speed on this machine; let nothing else run meanwhile.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, text in COMMANDS.items():
        command = commands.add_parser(name, help=text, description=text)
        if name != "stragglers":
            command.add_argument("--game", default="breakout", help="default: breakout")
        command.add_argument("--json", type=Path, metavar="FILE", help="write the results there, too")
        command.add_argument("--seconds", type=float, default=SECONDS.get(name, 15.0), help="per measurement")
        if name in ("pipeline", "peers"):
            command.add_argument("--repeats", type=int, default=3, help="runs of each, in turn (default: 3)")
        if name == "scaling":
            command.add_argument(
                "--hidden",
                type=counts,
                default=[],
                metavar="UNITS",
                help="sizes of the hidden layer to compare: 32,128,512",
            )
        if name in ("scaling", "predict"):
            command.add_argument("--plot", type=Path, metavar="FILE", help="write a picture (png) there")
        if name in ("pipeline", "scaling", "predict"):
            command.add_argument("--preset", default="paac", choices=["paac", "paper"], help="default: paac")
        if name == "predict":
            add_prediction(command)
    return parser


def add_prediction(command: ArgumentParser) -> None:
    networks = ",".join(prediction.NETWORKS)
    command.add_argument("--nodes", type=counts, default=[1, 4, 16, 64, 256, 1024], help="default: 1,4,16,64,256,1024")
    command.add_argument("--network", type=known_networks, default=networks, help=f"default: {networks}")
    command.add_argument("--cores", type=int, default=12, help="of a node, with a rank on each (default: 12)")


def counts(text: str) -> list[int]:
    numbers = [int(word) for word in text.split(",")]
    if min(numbers) < 1:
        raise ValueError
    return numbers


def known_networks(text: str) -> list[str]:
    names = text.split(",")
    if unknown := [name for name in names if name not in prediction.NETWORKS]:
        raise ArgumentTypeError(f"{unknown[0]}: not one of {', '.join(prediction.NETWORKS)}")
    return names
