"""The report of a run: one page of HTML without scripts or further files."""

from __future__ import annotations

import base64
import html
import io
import json
from collections.abc import Mapping, Sequence
from importlib.resources import files
from string import Template
from typing import Any, Final

from dpveil.bench.bounds import up
from dpveil.bench.cells import Cell
from dpveil.bench.league import SHOWN as KEPT
from dpveil.bench.league import League, Place, cautions, leagues, settings_in_words
from dpveil.bench.setting import NOTHING
from dpveil.bench.table import STRONGEST, Row
from dpveil.core.guarantee import count_noun
from dpveil.core.rationals import Json

COLOURS: Final = ("#0b7a75", "#b3541e", "#5b4b9a", "#1f6fb2", "#a0225a", "#5d7a1f", "#8a6d1d", "#444a55")
MARKS: Final = "osD^vP*X"
FORMAL: Final = ("pure", "approximate", "zcdp", "metric")
INK: Final = "#1c1e22"


def frontier(places: Sequence[Place]) -> str | None:
    """Return the plot of risk against SSIM as base64 of an SVG; None without matplotlib."""
    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure
    except ImportError:
        return None
    with mpl.rc_context({"svg.hashsalt": "dpveil", "svg.fonttype": "none", "font.family": "sans-serif"}):
        figure = Figure(figsize=(8.4, 5.2), layout="constrained")
        _draw(figure.add_subplot(), places)
        buffer = io.BytesIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    return base64.b64encode(buffer.getvalue()).decode()


def _draw(axes: Any, places: Sequence[Place]) -> None:
    names = list(dict.fromkeys(place.method for place in places))
    for number, name in enumerate(names):
        own = sorted((place for place in places if place.method == name), key=lambda place: place.ssim)
        colour, mark = COLOURS[number % len(COLOURS)], MARKS[number % len(MARKS)]
        x, y = [place.ssim for place in own], [place.risk for place in own]
        wide = [[place.risk - place.low for place in own], [place.high - place.risk for place in own]]
        face = colour if own[0].kind in FORMAL else "white"
        axes.errorbar(x, y, yerr=wide, color=colour, lw=1, marker=mark, mfc=face, ms=6, capsize=2, label=name)
    axes.set_xlabel("SSIM: how much of the picture is left", color=INK)
    axes.set_ylabel("risk: share of people named", color=INK)
    axes.set_ylim(-0.02, 1.04)
    axes.grid(color="#e4e2dc", lw=0.8)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))


def page(
    cells: Sequence[Cell],
    table: Sequence[Row],
    measures: Sequence[Mapping[str, str]],
    about: Mapping[str, Json],
) -> str:
    names = sorted({row.values["dataset"] for row in table})
    found = leagues(table, measures)
    template = files("dpveil.bench").joinpath("report.html").read_text(encoding="utf-8")
    return Template(template).substitute(
        title=html.escape(f"Attacks on {', '.join(names)}"),
        alarms="".join(f"<p class=alarm>{html.escape(alarm(row))}</p>" for row in table if row.above),
        cautions="".join(f"<p class=caution>{html.escape(line)}.</p>" for line in cautions(table)),
        summary=html.escape(_summary(cells, table)),
        leagues="".join(_league(one, several=len(names) > 1) for one in found),
        figures="".join(_figure(name, found) for name in names),
        strength=_strength(table),
        provenance=_provenance(about),
    )


def _summary(cells: Sequence[Cell], table: Sequence[Row]) -> str:
    methods = {row.values["method"] for row in table} - {NOTHING}
    attacks = {row.values["attack"] for row in table} - {STRONGEST}
    releases = {(cell.of["data"], len(cell.people), len(set(cell.people)), cell.chance) for cell in cells}
    told = "; ".join(
        f"{name}: {count} releases of {people} people, of which a guess names {100 * chance:.1f} %"
        for name, count, people, chance in sorted(releases, key=str)
    )
    sides = f"{count_noun(len(methods), 'method')} against {count_noun(len(attacks), 'attack')}"
    return f"{sides[0].upper()}{sides[1:]}. {told}. Attackers know other photos of everybody."


def alarm(row: Row) -> str:
    """Return that an attack succeeds more often than the guarantee allows."""
    values = row.values
    return (
        f"{values['method']} ({settings_in_words(values)}) breaks its guarantee: {values['attack']} names"
        f" {values['success']} ({values['low']} to {values['high']}), and the bound is {values['bound']}"
    )


def _league(league: League, *, several: bool) -> str:
    head = f"{league.dataset}: {league.title}" if several else league.title
    shown = [name for name in KEPT if any(name in place.kept for place in league.places)]
    rows = "".join(_place(place, shown) for place in league.places)
    headers = ("method", "risk", "95 %", "by", *(KEPT[name] for name in shown), "bound")
    cells = "".join(f"<th class={'t' if name in ('method', 'by') else 'n'}>{name}</th>" for name in headers)
    why = f"<p class=caution>Not ranked: {html.escape(league.unranked)}.</p>" if league.unranked else ""
    return (
        f"<h3>{html.escape(head)}</h3><p class=small>{html.escape(league.promise)}</p>{why}"
        f"{_scrolling(f'<table class=league><tr>{cells}</tr>{rows}</table>', head)}"
    )


def _place(place: Place, shown: Sequence[str]) -> str:
    bar = f"<span class=bar style='width:{max(1, round(40 * place.risk))}px'></span>"
    said = f"{html.escape(place.method)}<br><span class=small>{html.escape(place.settings)}</span>"
    by = html.escape(place.by).replace("(", "<wbr>(").replace("+", "<wbr>+")  # where a label may break
    bound = "" if place.bound is None else up(place.bound, 2)
    kept = "".join(
        _number_cell(
            KEPT[name], f"{place.kept[name]:.2f}" if name in place.kept else "", best=name in place.best
        )
        for name in shown
    )
    return (
        f"<tr><td>{said}</td>{_number_cell('risk', f'{bar} {place.risk:.2f}')}"
        f"{_number_cell('95 %', f'{place.low:.2f}–{place.high:.2f}')}"
        f"<td data-name='by'>{by}</td>"
        f"{kept}{_number_cell('bound', bound)}</tr>"
    )


def _number_cell(name: str, text: str, *, best: bool = False) -> str:
    return (
        f"<td class='n{' best' * best}' data-name='{html.escape(name)}'>{text}</td>" if text else "<td></td>"
    )


def _scrolling(table: str, name: str) -> str:
    """Return a table in a box that is scrolled, by keys too, where the window is narrower."""
    return f"<div class=scroll tabindex=0 role=region aria-label='{html.escape(name)}'>{table}</div>"


def _figure(dataset: str, found: Sequence[League]) -> str:
    drawn = frontier([place for league in found if league.dataset == dataset for place in league.places])
    if drawn is None:
        return "<p class=small>Plots need matplotlib: pip install 'dpveil[plots]'.</p>"
    words = (
        f"{dataset}: risk by the strongest attacker, with its 95 % interval, against SSIM. Lower and"
        " further right is better. Filled marks are methods with a promise; hollow ones have none."
    )
    picture = f"<img src='data:image/svg+xml;base64,{drawn}' alt='Risk against SSIM'>"
    return f"<figure>{picture}<figcaption>{html.escape(words)}</figcaption></figure>"


def _strength(table: Sequence[Row]) -> str:
    weak = [row for row in table if row.values["kind"] in ("none", "heuristic") and row.cell is not None]
    attacks = list(dict.fromkeys(row.values["attack"] for row in weak))
    settings = list(dict.fromkeys(map(_setting_of, weak)))
    rates = {(*_setting_of(row), row.values["attack"]): row for row in weak}
    head = "".join(f"<th class=n>{html.escape(name)}</th>" for name in attacks)
    lines = []
    for of in settings:
        cells = "".join(_rate(rates.get((*of, name))) for name in attacks)
        told = f"{of[1]}<br><span class=small>{html.escape(settings_in_words({'parameters': of[2]}))}</span>"
        lines.append(f"<tr><td>{told}</td>{cells}</tr>")
    return _scrolling(f"<table><tr><th>method</th>{head}</tr>{''.join(lines)}</table>", "Attackers")


def _rate(row: Row | None) -> str:
    if row is None:
        return "<td></td>"
    return f"<td class=n>{row.success:.2f} <span class=small>[{row.low:.2f}, {row.high:.2f}]</span></td>"


def _setting_of(row: Row) -> tuple[str, str, str]:
    return row.values["dataset"], row.values["method"], row.values["parameters"]


def _provenance(about: Mapping[str, Json]) -> str:
    libraries = json.dumps(about["libraries"], sort_keys=True).strip("{}").replace('"', "")
    notes = "".join(f" {html.escape(str(note))}." for note in about["notes"])  # type: ignore[union-attr]
    return (
        f"Made by <code>{html.escape(str(about['command']))}</code> with {html.escape(str(about['tool']))}"
        f" (code {html.escape(str(about['code_sha256'])[:12])}…), Python {html.escape(str(about['python']))},"
        f" {html.escape(libraries)}."
        f" <code>dpveil evaluate --check FOLDER</code> checks it.{notes}"
    )
