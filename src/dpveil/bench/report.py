"""The report of a run: one page of HTML without scripts or further files."""

from __future__ import annotations

import html
import json
from collections.abc import Mapping, Sequence
from importlib.resources import files
from string import Template
from typing import Final

from dpveil.bench.cells import Cell
from dpveil.bench.figures import frontier
from dpveil.bench.league import League, Place, leagues, settings_in_words
from dpveil.bench.settings import NOTHING
from dpveil.bench.table import STRONGEST, Row
from dpveil.core.numbers import Json

SHOWN: Final = (
    ("method", "method"),
    ("attack", "attack"),
    ("success", "success"),
    ("interval", "95 %"),
    ("chance", "chance"),
    ("bound", "bound"),
    ("failures", "failures"),
    ("near", "among 5"),
    ("equal_error", "EER"),
    ("tar_far_1e-2", "TAR, FAR 1 %"),
)
"""Columns of the table of every number, and their headers."""
TEXTS: Final = ("method", "attack")


def page(
    cells: Sequence[Cell],
    table: Sequence[Row],
    measures: Sequence[Mapping[str, str]],
    about: Mapping[str, Json],
) -> str:
    """Return the report as HTML."""
    names = sorted({row.values["dataset"] for row in table})
    found = leagues(table, measures)
    first = table[0].values
    template = files("dpveil.bench").joinpath("report.html").read_text(encoding="utf-8")
    return Template(template).substitute(
        title=html.escape(f"Attacks on {', '.join(names)}"),
        alarms="".join(f"<p class=alarm>{html.escape(alarm(row))}</p>" for row in table if row.above),
        summary=html.escape(_summary(cells, table)),
        chance=f"{100 * float(first['chance']):.1f} %",
        leagues="".join(_league(one, several=len(names) > 1) for one in found),
        figures="".join(_figure(name, found) for name in names),
        strength=_strength(table),
        every=_every(table),
        provenance=_provenance(about),
    )


def _summary(cells: Sequence[Cell], table: Sequence[Row]) -> str:
    methods = {row.values["method"] for row in table} - {NOTHING}
    attacks = {row.values["attack"] for row in table} - {STRONGEST}
    releases = {(cell.of["data"], len(cell.people), len(set(cell.people))) for cell in cells}
    told = "; ".join(
        f"{name}: {count} releases of {people} people" for name, count, people in sorted(releases, key=str)
    )
    return f"{len(methods)} methods against {len(attacks)} attacks. {told}."


def alarm(row: Row) -> str:
    """Return that an attack succeeds more often than the guarantee allows."""
    values = row.values
    return (
        f"{values['method']} ({settings_in_words(values)}) breaks its guarantee: {values['attack']} names"
        f" {values['success']} ({values['low']} to {values['high']}), and the bound is {values['bound']}"
    )


def _league(league: League, *, several: bool) -> str:
    head = f"{league.dataset}: {league.title}" if several else league.title
    rows = "".join(_place(place) for place in league.places)
    headers = ("method", "risk", "95 %", "by", "SSIM", "bound")
    cells = "".join(
        f"<th class={'n' if name in ('risk', '95 %', 'SSIM', 'bound') else 't'}>{name}</th>"
        for name in headers
    )
    return (
        f"<h3>{html.escape(head)}</h3><p class=small>{html.escape(league.promise)}</p>"
        f"<div class=scroll><table class=league><tr>{cells}</tr>{rows}</table></div>"
    )


def _place(place: Place) -> str:
    bar = f"<span class=bar style='width:{max(1, round(40 * place.risk))}px'></span>"
    said = f"{html.escape(place.method)}<br><span class=small>{html.escape(place.settings)}</span>"
    bound = "" if place.bound is None else f"{place.bound:.2f}"
    best = " class=best" if place.best else ""
    return (
        f"<tr{best}><td>{said}</td><td class=n>{bar} {place.risk:.2f}</td>"
        f"<td class=n>{place.low:.2f}–{place.high:.2f}</td><td>{html.escape(place.by)}</td>"
        f"<td class=n>{place.ssim:.2f}</td><td class=n>{bound}</td></tr>"
    )


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
    settings = list(
        dict.fromkeys((row.values["dataset"], row.values["method"], row.values["parameters"]) for row in weak)
    )
    rates = {(*_of(row), row.values["attack"]): row for row in weak}
    head = "".join(f"<th class=n>{html.escape(name)}</th>" for name in attacks)
    lines = []
    for of in settings:
        cells = "".join(_rate(rates.get((*of, name))) for name in attacks)
        told = f"{of[1]}<br><span class=small>{html.escape(settings_in_words({'parameters': of[2]}))}</span>"
        lines.append(f"<tr><td>{told}</td>{cells}</tr>")
    return f"<div class=scroll><table><tr><th>method</th>{head}</tr>{''.join(lines)}</table></div>"


def _rate(row: Row | None) -> str:
    if row is None:
        return "<td></td>"
    return f"<td class=n>{row.success:.2f} <span class=small>[{row.low:.2f}, {row.high:.2f}]</span></td>"


def _of(row: Row) -> tuple[str, str, str]:
    return row.values["dataset"], row.values["method"], row.values["parameters"]


def _every(table: Sequence[Row]) -> str:
    head = "".join(f"<th class={'t' if name in TEXTS else 'n'}>{title}</th>" for name, title in SHOWN)
    return f"<table><tr>{head}</tr>{''.join(map(_line, table))}</table>"


def _line(row: Row) -> str:
    values = {**row.values, "interval": f"{row.low:.2f}–{row.high:.2f}"}
    cells = []
    for name, _ in SHOWN:
        text = html.escape(values[name])
        if name == "method":
            text += f"<br><span class=small>{html.escape(settings_in_words(row.values))}</span>"
        cells.append(f"<td class={'t' if name in TEXTS else 'n'}>{text}</td>")
    return f"<tr>{''.join(cells)}</tr>"


def _provenance(about: Mapping[str, Json]) -> str:
    libraries = json.dumps(about["libraries"], sort_keys=True).strip("{}").replace('"', "")
    notes = "".join(f" {html.escape(str(note))}." for note in about["notes"])  # type: ignore[union-attr]
    return (
        f"Made by <code>{html.escape(str(about['command']))}</code> with {html.escape(str(about['tool']))}"
        f" (code {str(about['code_sha256'])[:12]}…), Python {about['python']}, {html.escape(libraries)}."
        f" <code>dpveil evaluate --check FOLDER</code> checks it.{notes}"
    )
