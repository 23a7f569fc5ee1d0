"""Strong and weak scaling of the real trainer over rank counts, inside one job that any launcher started."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Table

from dba3c import benchmarks
from dba3c.benchmarks import launching, training_ranks
from dba3c.benchmarks.launching import Bar
from dba3c.benchmarks.training_ranks import Job, make_job
from dba3c.job.process import load_tensorflow
from dba3c.job.world import World
from dba3c.types import Json

if TYPE_CHECKING:
    from matplotlib.axes import Axes
from collections.abc import Sequence
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes


HELP = "samples/s and efficiency over rank counts; under mpirun or srun, or alone on all cores" + benchmarks.KEYS_TOO
BASE_FACTORS = (1, 2, 4)  # times n_sim: simulators of the one-rank layouts that efficiency is measured against


def options(parser: ArgumentParser) -> None:
    benchmarks.add_game(parser)
    benchmarks.add_seconds(parser, 15.0)
    units = "sizes of the hidden layer to compare: 32,128,512"
    parser.add_argument("--hidden", type=benchmarks.counts, default=[], metavar="UNITS", help=units)
    benchmarks.add_plot(parser)
    benchmarks.add_preset(parser)
    parser.set_defaults(takes_keys=True)


def measure(world: World, options: Namespace, bar: Bar) -> Json:
    """Make all measurements, one after the other; the same result on every rank."""
    from dba3c.comm import installed

    load_tensorflow(world.threads)
    job = make_job(world, options.preset, options.game, options.seconds, *options.overrides)
    rows = rank_rows(job, bar)
    alone = [row for row in rows if row["scaling"] == "alone"]
    base = max(alone, key=lambda row: float(row["points_per_second"]))
    for row in rows:
        row["efficiency"] = row["points_per_second"] / row["ranks"] / base["points_per_second"]
    hidden = [hidden_row(world, options, units) for units in launching.track(bar, options.hidden, "hidden units")]
    transports = [name for name in ("mpi", "horovod") if installed(name)]
    return {
        "machine": launching.machine(),
        "base": base,
        "rows": rows,
        "hidden": hidden,
        "allreduce_milliseconds": {name: training_ranks.allreduce_milliseconds(job, name) for name in transports},
    }


def rank_rows(job: Job, bar: Bar) -> list[Json]:
    """Measure one rank alone, then as many simulators per rank (weak), then as many in the whole job (strong)."""
    n_sim, size = job.config.env.n_sim, job.world.size
    plan = [("alone", 1, n_sim * factor) for factor in BASE_FACTORS]
    plan += [("weak", count, n_sim) for count in counts(size)]
    plan += [("strong", count, max(1, n_sim * size // count)) for count in counts(size)]
    return [
        {"scaling": kind} | training_ranks.row(job, count, simulators)
        for kind, count, simulators in launching.track(bar, plan, "scaling")
    ]


def counts(size: int) -> list[int]:
    """List 1, 2, 4, … and the whole job."""
    return sorted({2**power for power in range(size.bit_length()) if 2**power <= size} | {size})


def hidden_row(world: World, options: Namespace, units: int) -> Json:
    """Measure the whole job with another size of the hidden layer: a larger one makes the message longer, too."""
    overrides = (*options.overrides, f"model.hidden={units}")
    job = make_job(world, options.preset, options.game, options.seconds, *overrides)
    parameters = job.agent.layout.total
    return {"hidden": units, "parameters": parameters} | training_ranks.row(job, world.size, job.config.env.n_sim)


def table(result: Json) -> Group:
    """Show the rank counts, the transports and, if they were measured, the hidden units."""
    times = [f"{name} {value:.2f} ms" for name, value in result["allreduce_milliseconds"].items()]
    shown: list[RenderableType] = [rank_table(result), f"one all-reduce over all ranks: {', '.join(times)}"]
    if result["hidden"]:
        shown.append(hidden_table(result))
    return Group(*shown)


def rank_table(result: Json) -> Table:
    base = result["base"]
    alone = f"{base['games_per_rank']} simulators, {base['points_per_second']:,.0f}/s"
    names = (
        "scaling",
        "ranks",
        "hosts",
        "simulators per rank",
        "batch",
        "samples/s",
        "efficiency",
        "updates/s",
        "waiting",
    )
    shown = Table(*names, title=f"samples, and efficiency against the fastest rank alone: {alone}")
    for row in result["rows"]:
        sizes = [str(row[name]) for name in ("ranks", "hosts", "games_per_rank", "effective_batch")]
        paces = [f"{row['points_per_second']:,.0f}", f"{row['efficiency']:.0%}", f"{row['updates_per_second']:.1f}"]
        shown.add_row(row["scaling"], *sizes, *paces, f"{row['wait_share']:.0%}")
    return shown


def hidden_table(result: Json) -> Table:
    names = "hidden units", "parameters", "message", "samples/s", "waiting"
    shown = Table(*names, title="size of the hidden layer, all ranks")
    for row in result["hidden"]:
        size = f"{row['parameters'] * 4 / 1e6:.1f} MB"
        paces = f"{row['points_per_second']:,.0f}", f"{row['wait_share']:.0%}"
        shown.add_row(str(row["hidden"]), f"{row['parameters']:,}", size, *paces)
    return shown


def plot(result: Json, file: Path) -> None:
    """Draw samples/s and efficiency over the ranks, and samples/s over the hidden units if those were measured."""
    plt = pyplot()
    panels = 3 if result["hidden"] else 2
    figure, (paces, efficiencies, *rest) = plt.subplots(1, panels, figsize=(5 * panels, 4), layout="constrained")
    plot_paces(result, paces)
    plot_efficiencies(result["rows"], efficiencies)
    for axes in rest:
        plot_hidden(result["hidden"], axes)
    figure.savefig(file, dpi=120)
    plt.close(figure)


def plot_paces(result: Json, axes: Axes) -> None:
    """Draw samples/s over the number of ranks, next to what as many ranks would reach that never wait."""
    ranks = sorted({row["ranks"] for row in result["rows"]})
    ideal = [count * result["base"]["points_per_second"] for count in ranks]
    axes.plot(ranks, ideal, ":", color="gray", label="ideal")
    plot_kinds(result["rows"], "points_per_second", axes)
    axes.set(yscale="log", ylabel="samples/s", title=result["machine"]["cpu"])
    count_axis(axes, "ranks", ranks)
    axes.set_yticks(ideal, [f"{pace:,.0f}" for pace in ideal])
    axes.legend()


def plot_efficiencies(rows: list[Json], axes: Axes) -> None:
    plot_kinds(rows, "efficiency", axes)
    percent_axis(axes, "efficiency against the fastest rank alone", 1.1)
    count_axis(axes, "ranks", sorted({row["ranks"] for row in rows}))


def plot_kinds(rows: list[Json], key: str, axes: Axes) -> None:
    """Draw weak and strong scaling as two lines."""
    for kind, marker in (("weak", "o"), ("strong", "s")):
        chosen = [row for row in rows if row["scaling"] == kind]
        axes.plot([row["ranks"] for row in chosen], [row[key] for row in chosen], marker=marker, label=kind)


def plot_hidden(rows: list[Json], axes: Axes) -> None:
    """Draw samples/s of all ranks over the size of the hidden layer."""
    units = [row["hidden"] for row in rows]
    axes.plot(units, [row["points_per_second"] for row in rows], marker="o")
    axes.set_ylabel(f"samples/s of {rows[0]['ranks']} ranks")
    axes.set_ylim(bottom=0)
    count_axis(axes, "hidden units", units)


def pyplot() -> ModuleType:
    """Load matplotlib for files, without a screen."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    return plt


def count_axis(axes: Axes, name: str, counts: Sequence[int]) -> None:
    """Draw the x axis in powers, with a mark at each count."""
    axes.set(xscale="log", xlabel=name)
    axes.set_xticks(counts, [str(count) for count in counts])
    axes.minorticks_off()
    axes.grid(alpha=0.3)


def percent_axis(axes: Axes, name: str, highest: float) -> None:
    """Draw the y axis from 0 % to `highest`, a fraction."""
    from matplotlib.ticker import PercentFormatter

    axes.set(ylim=(0, highest), ylabel=name)
    axes.yaxis.set_major_formatter(PercentFormatter(1.0))
