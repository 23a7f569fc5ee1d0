"""The results of the benchmarks as tables."""

from __future__ import annotations

from typing import Any

from rich.table import Table

Row = dict[str, Any]


def spread(row: Row) -> str:
    return f"{row['lowest']:,.0f}-{row['highest']:,.0f}"


def parts(rows: list[Row], cores: int) -> Table:
    names = list(rows[0]["microseconds_per_step"])
    table = Table("torso", *names, "sum", "bound, steps/s", title=f"µs per step on one core of {cores}, all busy")
    for row in rows:
        costs = row["microseconds_per_step"]
        cells = [f"{costs[name]:,.0f}" for name in names]
        table.add_row(row["torso"], *cells, f"{sum(costs.values()):,.0f}", f"{row['bound_steps_per_second']:,.0f}")
    return table


def arithmetic(row: Row) -> str:
    """How near a torso's parts come to what a core can do."""
    peak = row["peak_gflops"]
    rates = [f"{part} {row[f'{part}_gflops'] / peak:.0%}" for part in ("predict", "gradient")]
    return (
        f"{row['torso']}: {row['multiply_adds_forward'] / 1e6:.1f} million multiply-adds per prediction"
        f" ({row['microseconds']['predict']:,.0f} µs); of the {peak:.0f} Gflop/s that a core reaches in a large"
        f" matrix product: {', '.join(rates)}"
    )


def pipeline(rows: list[Row], game: str) -> Table:
    names = [name for name in rows[0]["shares"] if any(row["shares"][name] >= 0.005 for row in rows)]
    table = Table("layout", "steps/s", "spread", "× first", "of bound", *names, title=f"training {game}")
    for row in rows:
        shares = [f"{row['shares'][name]:.0%}" for name in names]
        ratio = row["steps_per_second"] / rows[0]["steps_per_second"]
        pace, fraction = f"{row['steps_per_second']:,.0f}", f"{row['fraction_of_bound']:.2f}"
        table.add_row(row["layout"], pace, spread(row), f"{ratio:.2f}", fraction, *shares)
    return table


def peers(rows: list[Row], game: str) -> Table:
    table = Table("system", "steps/s", "spread", "we are faster by", title=f"training {game}, NIPS network, 128 hidden")
    for row in rows:
        table.add_row(row["system"], f"{row['steps_per_second']:,.0f}", spread(row), f"{row['ratio']:.2f} ×")
    return table


def scaling(result: Row) -> Table:
    base = result["base"]
    alone = f"{base['games_per_rank']} games, {base['points_per_second']:,.0f}/s"
    columns = ("scaling", "ranks", "hosts", "games per rank", "batch", "points/s", "efficiency", "updates/s", "waiting")
    table = Table(*columns, title=f"data points, and efficiency against the fastest rank alone: {alone}")
    for row in result["rows"]:
        counts = [str(row[name]) for name in ("ranks", "hosts", "games_per_rank", "effective_batch")]
        paces = [f"{row['points_per_second']:,.0f}", f"{row['efficiency']:.0%}", f"{row['updates_per_second']:.1f}"]
        table.add_row(row["scaling"], *counts, *paces, f"{row['wait_share']:.0%}")
    return table


def hidden(result: Row) -> Table:
    table = Table(
        "hidden units", "parameters", "message", "points/s", "waiting", title="size of the hidden layer, all ranks"
    )
    for row in result["hidden"]:
        size = f"{row['parameters'] * 4 / 1e6:.1f} MB"
        paces = f"{row['points_per_second']:,.0f}", f"{row['wait_share']:.0%}"
        table.add_row(str(row["hidden"]), f"{row['parameters']:,}", size, *paces)
    return table


def transports(result: Row) -> str:
    times = [f"{name} {value:.2f} ms" for name, value in result["allreduce_milliseconds"].items()]
    return f"one all-reduce over all ranks: {', '.join(times)}"


def stragglers(result: Row) -> Table:
    columns = ("ranks", "n_backup", "updates/s", "predicted", "of equal ranks", "longest update")
    table = Table("case", *columns, title="emulated computing, real messages")
    for row in result["rows"]:
        predicted = f"{row['predicted']:.2f}" if row["predicted"] else ""
        paces = [f"{row['updates_per_second']:.2f}", predicted, f"{row['of_equal_ranks']:.0%}"]
        table.add_row(row["case"], str(row["ranks"]), str(row["n_backup"]), *paces, f"{row['longest_update']:.2f} s")
    return table


def prediction(result: Row) -> Table:
    measured = result["measured"]
    mean, spread_of_it = measured["compute_seconds"] * 1e3, measured["compute_spread"] * 1e3
    computing = f"{mean:.0f} ± {spread_of_it:.0f} ms per gradient on one core"
    title = f"preset {measured['preset']}: {computing}, {result['cores_per_node']} ranks per node"
    table = Table("network", "nodes", "efficiency", "data points/s", "ms per update", "n_backup", title=title)
    for row in result["rows"]:
        paces = [
            f"{row['efficiency']:.0%}",
            f"{row['points_per_second']:,.0f}",
            f"{row['seconds_per_update'] * 1e3:.0f}",
        ]
        table.add_row(row["network"], str(row["nodes"]), *paces, str(row["n_backup"]))
    return table
