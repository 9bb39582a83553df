"""The work on rows, without any engine: outcomes, deaths, time limits, stores and ledgers."""

import fcntl
import os
import pickle
import signal
from contextlib import suppress
from dataclasses import replace
from functools import partial
from hashlib import sha256

import pytest
from budgets import forked, made, url_of
from scale_made import PIX, Dark, Deadly, Endless, paid, plain, png, releases

import dpveil.io.writing
from dpveil.batch.report import Report
from dpveil.cli import run
from dpveil.datasets import Cache
from dpveil.errors import LedgerError
from dpveil.io import locking
from dpveil.ledger import Ledger
from dpveil.ledger.ledger import Reservation
from dpveil.scale.files import Outcomes, Row, Setup, Worker, append_rows

WHITE = plain(255)


def died(work):
    """Run `work` in a forked process that ends before it is done; return its exit code."""
    code = os.waitstatus_to_exitcode(os.waitpid(forked(work), 0)[1])
    assert code != 0
    return code


def statuses(rows):
    return [row.status for row in rows]


def test_every_row_has_one_outcome_and_a_release_of_its_own(tmp_path):
    ledger = made(tmp_path / "budget.db", limit=9)
    paying = {"ledger": url_of(tmp_path / "budget.db"), "subject": "album"}
    setup = Setup.of(**PIX, regions=[Dark()], store=tmp_path / "store", **paying)
    (tmp_path / "photo.png").write_bytes(png(2))
    given = [png(0), plain(0), b"no photo", png(1), "nothing.png", png(0), str(tmp_path / "photo.png")]
    rows = Worker(pickle.loads(pickle.dumps(setup)))([(str(n), "", data) for n, data in enumerate(given)])  # noqa: S301
    expected = ["released", "no_region", "failed", "released", "failed", "released", "released"]
    assert statuses(rows) == expected
    drawn = {rows[place].release for place in (0, 3, 5, 6)}  # one is a copy of the first
    assert releases(tmp_path / "store") == drawn
    assert len(drawn) == 4
    assert [row.problem for row in rows if row.status == "no_region"] == ["there is nobody in this photo"]
    assert paid(ledger) == (4, 0)
    assert sorted(setup.outcomes.final(setup.run), key=lambda row: row.key) == rows
    assert len(setup.outcomes.finished_names()) == 4
    assert Outcomes(tmp_path / "store", replace(setup.releaser, if_none="whole")).finished_names() == set()


def test_a_retry_elsewhere_and_another_run_draw_nothing(tmp_path):
    ledger = made(tmp_path / "budget.db", limit=9)
    paying = {"ledger": url_of(tmp_path / "budget.db"), "subject": "album"}
    rows = [(str(n), "", png(n)) for n in range(4)]
    first = Setup.of(**PIX, store=tmp_path / "store", **paying)
    once, again = Worker(first)(rows), Worker(first)(list(reversed(rows)))
    other = Worker(Setup.of(**PIX, store=tmp_path / "store", **paying))(rows)
    assert once == again[::-1] == other
    assert paid(ledger) == (4, 0)


def test_files_of_a_release_that_was_paid_for_get_their_names_after_a_death(tmp_path, monkeypatch):
    ledger = made(tmp_path / "budget.db", limit=9)
    paying = {"ledger": url_of(tmp_path / "budget.db"), "subject": "album"}
    setup = Setup.of(**PIX, store=tmp_path / "store", **paying)
    for number in range(2):  # before its first file has a name, and between the two
        with monkeypatch.context() as patched:
            calls = iter(range(9))
            place = dpveil.io.writing._place
            patched.setattr(
                dpveil.io.writing,
                "_place",
                lambda *given, n=number, c=calls, p=place: os._exit(9) if next(c) == n else p(*given),
            )
            assert died(partial(Worker(setup), [(str(number), "", png(number))])) == 9
        assert paid(ledger) == (number + 1, 0)
        assert statuses(Worker(setup)([(str(number), "", png(number))])) == ["released"]
        assert paid(ledger) == (number + 1, 0)
        assert len(releases(tmp_path / "store")) == number + 1


def test_a_release_that_is_gone_is_not_drawn_again(tmp_path):
    ledger = made(tmp_path / "budget.db", limit=9)
    paying = {"ledger": url_of(tmp_path / "budget.db"), "subject": "album"}
    setup = Setup.of(**PIX, store=tmp_path / "store", **paying)
    [row] = Worker(setup)([("a", "", png(0))])
    for path in (tmp_path / "store" / "releases").rglob("*.png*"):
        half = path.with_name(".dpveil-0123456789abcdef.tmp")
        path.rename(half) if path.suffix == ".png" else path.unlink()
    [other] = Worker(setup)([("a", "", png(0))])
    assert (row.status, other.status, other.error) == ("released", "failed", "AlreadyPaid")
    assert paid(ledger) == (1, 0)
    assert setup.outcomes.finished_names() == set()


def test_a_photo_that_another_process_has_fails_and_stops_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(locking, "PATIENCE", 0)
    setup = Setup.of(**PIX, store=tmp_path / "store")
    worker = Worker(setup)
    [row] = worker([("a", "", png(0))])
    (tmp_path / "store" / "releases" / row.release).unlink()
    (tmp_path / "store" / "releases" / f"{row.release}.certificate.json").unlink()
    with locking.sole_writer([tmp_path / "store" / "drawing" / row.release[:4]]):
        done = worker([("a", "", png(0)), ("b", "", b"")])
    assert statuses(done) == ["failed", "failed"]
    assert "another process" in done[0].problem
    assert statuses(worker([("a", "", png(0))])) == ["released"]


def test_a_photo_of_which_two_processes_die_fails_until_another_run(tmp_path):
    setup = Setup.of(**PIX, regions=[Deadly()], store=tmp_path / "store")
    rows = [("good", "", png(0)), ("poison", "", WHITE), ("after", "", png(1))]
    other = Setup.of(**PIX, regions=[Deadly()], store=tmp_path / "store")
    assert [died(partial(Worker(each), rows)) for each in (setup, other, setup)] == [9] * 3
    done = Worker(setup)(rows)
    assert statuses(done) == ["released", "failed", "released"]
    assert "crashed" in done[1].problem
    assert statuses(Worker(setup)(rows)) == ["released", "failed", "released"]  # for the rest of the run
    left = [path.read_bytes() for path in (tmp_path / "store" / "tries").rglob("*") if path.is_file()]
    assert sorted(left) == [b".", b".."]  # of the other run, and of this one


@pytest.mark.parametrize("lost", ["folder", "key", "version"])
def test_a_machine_without_the_store_draws_nothing(tmp_path, lost):
    setup = Setup.of(**PIX, store=tmp_path / "store")
    if lost == "folder":
        (tmp_path / "store").rename(tmp_path / "elsewhere")
    elif lost == "key":
        (tmp_path / "store" / "key").write_bytes(bytes(32))
    else:
        setup = replace(setup, version="0")
    rows = Worker(setup)([("a", "", png(0)), ("b", "", png(1))])
    assert statuses(rows) == ["untried"] * 2
    assert {row.error for row in rows} == {"UsageError" if lost == "version" else "OutputError"}
    assert lost == "version" or (tmp_path / "store").exists() == (lost == "key")
    assert not list(tmp_path.rglob("*.png"))


def test_after_a_failure_of_the_ledger_nothing_is_tried(tmp_path, monkeypatch):
    made(tmp_path / "budget.db", limit=2)
    paying = {"ledger": url_of(tmp_path / "budget.db"), "subject": "album"}
    setup = Setup.of(**PIX, store=tmp_path / "store", **paying)
    rows = [(str(n), "", png(n)) for n in range(4)]
    done = Worker(setup)(rows)
    assert statuses(done) == ["released", "released", "failed", "failed"]
    assert {row.error for row in done[2:]} == {"BudgetExceeded"}

    def broken(*given, **more):
        raise LedgerError("the ledger is damaged")

    monkeypatch.setattr(Ledger, "debit", broken)
    done = Worker(setup)(rows)
    assert statuses(done) == ["released", "released", "failed", "untried"]
    assert {row.error for row in done[2:]} == {"LedgerError"}


def test_the_release_of_a_row_wins_over_its_failures(tmp_path):
    outcomes = Setup.of(**PIX, store=tmp_path / "store").outcomes
    for number, status in enumerate(("failed", "released", "untried", "released")):
        release = "00/" + "0" * 62 + ".png" if number % 2 else ""
        append_rows(
            outcomes.new_file("run"), [Row("a", "1", status, release=release), Row("b", "1", "failed")]
        )
    append_rows(outcomes.new_file("other"), [Row("c", "1", "failed")])
    assert sorted((row.key, row.status) for row in outcomes.final("run")) == [
        ("a", "released"),
        ("b", "failed"),
    ]


def test_what_nobody_or_another_one_paid_for_is_not_released(tmp_path):
    """Whoever pays nothing, or has no limit, gets nothing of what is in the store."""
    ledger, store, rows = made(tmp_path / "budget.db", limit=9), tmp_path / "store", [("a", "", png(0))]
    other = {"ledger": url_of(tmp_path / "budget.db"), "subject": "other"}
    paying = {"ledger": url_of(tmp_path / "budget.db"), "subject": "album"}
    second = made(tmp_path / "second.db", limit=9)
    elsewhere = {"ledger": url_of(tmp_path / "second.db"), "subject": "album"}
    free = Setup.of(**PIX, store=store)
    assert statuses(Worker(free)(rows)) == ["released"]
    for payer in (paying, other):
        setup = Setup.of(**PIX, store=store, **payer)
        assert setup.outcomes.finished_names() == set()
        [row] = Worker(setup)(rows)
        assert (row.status, f"{payer['subject']} did not pay" in row.problem) == ("failed", True)
    assert paid(ledger) == (0, 0)
    store = tmp_path / "paid"
    for payer, status in (
        (paying, "released"),
        (other, "failed"),
        (elsewhere, "failed"),
        (paying, "released"),
    ):
        setup = Setup.of(**PIX, store=store, **payer)
        assert statuses(Worker(setup)(rows)) == [status]
        assert len(setup.outcomes.finished_names()) == (status == "released")
    assert (paid(ledger), paid(second)) == ((1, 0), (0, 0))
    [path] = (store / "releases").rglob("*.png")
    assert ledger.knows("album", sha256(path.read_bytes()).hexdigest())


def no_links(*_, **__):
    raise OSError(1, "Operation not permitted")


CAUSES = [KeyboardInterrupt(), SystemExit(1), OSError(5, "Input/output error")]


@pytest.mark.parametrize("cause", CAUSES, ids=lambda cause: type(cause).__name__)
@pytest.mark.parametrize("links", [True, False])
def test_a_paid_photo_is_not_lost_by_an_interrupt_or_a_disk(tmp_path, monkeypatch, cause, links):
    """Once the ledger noted it, and before and after each of its files has its name."""
    ledger = made(tmp_path / "budget.db", limit=9)
    paying = {"ledger": url_of(tmp_path / "budget.db"), "subject": "album"}
    setup = Setup.of(**PIX, store=tmp_path / "store", **paying)
    place, stored = dpveil.io.writing._place, Reservation.stored
    for number in range(5):
        calls = iter(range(9))

        def fails(*given, n=number, c=calls):
            call = 2 * next(c)
            if call == n:
                raise cause
            place(*given)
            if call + 1 == n:
                raise cause

        def noted(*given):
            stored(*given)
            raise cause

        with monkeypatch.context() as patched:
            if not links:
                patched.setattr(os, "link", no_links)
            patched.setattr(dpveil.io.writing, "_place", fails)
            if number == 4:
                patched.setattr(Reservation, "stored", noted)
            with suppress(KeyboardInterrupt, SystemExit):
                Worker(setup)([(str(number), "", png(number))])
        assert len(releases(tmp_path / "store")) == number  # nothing has a name
        assert paid(ledger) == (number + 1, 0)
        assert statuses(Worker(setup)([(str(number), "", png(number))])) == ["released"]
        assert paid(ledger) == (number + 1, 0)
        assert len(releases(tmp_path / "store")) == number + 1


def test_on_a_disk_without_locks_nothing_is_drawn(tmp_path, monkeypatch):
    def refused(*_):
        raise OSError(37, "No locks available")

    ledger = made(tmp_path / "budget.db", limit=9)
    paying = {"ledger": url_of(tmp_path / "budget.db"), "subject": "album"}
    setup = Setup.of(**PIX, store=tmp_path / "store", **paying)
    monkeypatch.setattr(fcntl, "flock", refused)
    done = Worker(setup)([("a", "", png(0)), ("b", "", png(1))])
    assert statuses(done) == ["failed", "untried"]
    assert "cannot be locked" in done[0].problem
    assert paid(ledger) == (0, 0)


def test_a_worker_opens_no_file_of_its_ledger(tmp_path):
    ledger = made(tmp_path / "budget.db", limit=9)
    paying = {"ledger": url_of(tmp_path / "budget.db"), "subject": "album"}
    setup = Setup.of(**PIX, store=tmp_path / "store", **paying)
    (tmp_path / "0.png").write_bytes(png(0))
    (tmp_path / "x.png").symlink_to(tmp_path / "budget.db")
    (tmp_path / "y.png").symlink_to(tmp_path / "budget.db-wal")
    rows = Worker(setup)([(each, "", str(tmp_path / each)) for each in ("0.png", "x.png", "y.png")])
    assert statuses(rows) == ["released", "failed", "failed"]
    assert all("belongs to the ledger" in row.problem for row in rows[1:])
    assert paid(ledger) == (1, 0)


def test_an_engine_keeps_inputs_apart_from_the_ledger_and_closes_it(tmp_path, monkeypatch, capsys):
    made(tmp_path / "budget.db", limit=9).close()
    closed, began = [], []
    close = Ledger.close
    monkeypatch.setattr(Ledger, "close", lambda self: (closed.append(self), close(self)))
    monkeypatch.setattr(
        "dpveil.scale.release_files",
        lambda *_, **__: began.append(len(closed)) or Report(),
        raising=False,
    )
    (tmp_path / "in").mkdir()
    (tmp_path / "in/0.png").write_bytes(png(0))
    paying = ["--ledger", url_of(tmp_path / "budget.db"), "--subject", "album", "--engine", "ray"]
    given = ["obfuscate", str(tmp_path / "in"), "--out", str(tmp_path / "store"), "--method", "dp-pix"]
    given += ["--epsilon", "1", "--block", "4", "--neighbourhood", "4", "--regions", "whole", *paying]
    run(given)
    assert began == [1]
    (tmp_path / "x.png").symlink_to(tmp_path / "budget.db")
    assert run([*given, str(tmp_path / "x.png")]) == 2
    assert "belongs to the ledger" in capsys.readouterr().err
    assert began == [1]


@pytest.mark.parametrize("handled", ["", "handled", "blocked"])
def test_a_process_that_takes_too_long_ends(tmp_path, handled, monkeypatch):
    """By the system's signal, or by a thread where something else has that, or blocks it."""
    if handled == "handled":
        monkeypatch.setattr(signal, "getsignal", lambda _: signal.default_int_handler)
    if handled == "blocked":
        monkeypatch.setattr(signal, "pthread_sigmask", lambda *_: {signal.SIGALRM})
    setup = Setup.of(**PIX, regions=[Endless()], store=tmp_path / "store", seconds=1)
    rows = [("endless", "", WHITE)]
    assert [died(lambda: Worker(setup, own=True)(rows)) for _ in range(2)] == [
        1 if handled else -signal.SIGALRM
    ] * 2
    [row] = Worker(setup, own=True)(rows)
    assert (row.status, "out of time" in row.problem) == ("failed", True)


def dies(*_):
    os._exit(9)


def test_deaths_after_the_payment_are_bounded_in_each_run(tmp_path, monkeypatch):
    """Two for each row, whatever other runs, and other rows of its batch, do meanwhile."""
    ledger = made(tmp_path / "budget.db", limit=99)
    paying = {"ledger": url_of(tmp_path / "budget.db"), "subject": "album"}
    runs = [Setup.of(**PIX, store=tmp_path / "store", **paying) for _ in range(2)]
    monkeypatch.setattr(Cache, "store", dies)
    rows = [(key, key, png(0)) for key in "abc"]  # copies in one batch
    for number in range(12):  # in turn
        assert died(partial(Worker(runs[number % 2]), rows)) == 9
    assert paid(ledger) == (12, 12)
    for setup in runs:
        assert statuses(Worker(setup)(rows)) == ["failed"] * 3
        assert statuses(Worker(setup)([(key, "touched", png(9)) for key, _, _ in rows])) == ["failed"] * 3
    assert paid(ledger) == (12, 12)
