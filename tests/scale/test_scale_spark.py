"""Spark on this machine, without a network: rows, a ledger, and Python workers that die."""

import os
import shutil
import sys
from collections import Counter
from pathlib import Path

import pytest
from budgets import made, url_of
from scale_made import PIX, Dying, paid, plain, png, releases

from dpveil.scale import Mapper, Setup

pyspark = pytest.importorskip("pyspark", reason="needs pyspark and Java")
pytestmark = [
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.skipif(shutil.which("java") is None, reason="Spark needs Java"),
]
SCHEMA = "path string, release string, status string, problem string"
ALONE = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.driver.memory": "600m",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "4",
}


@pytest.fixture(scope="module")
def spark(tmp_path_factory):
    """Return a session with two cores, which tries a task four times."""
    from pyspark.sql import SparkSession

    paths = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    with pytest.MonkeyPatch.context() as patched:
        for name, value in {
            "PYTHONPATH": paths,  # workers have the finders of tests, too
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_LOCAL_DIRS": str(tmp_path_factory.mktemp("spark")),
        }.items():
            patched.setenv(name, value)
        builder = SparkSession.builder.master("local[2, 4]").appName("dpveil")
        session = builder.config(map=ALONE).getOrCreate()
        session.sparkContext.setLogLevel("OFF")
        yield session
        session.stop()


def mapper(tmp_path, **more):
    paying = {"ledger": url_of(tmp_path / "budget.db"), "subject": "album"}
    regions = [Dying(str(tmp_path / "died"))]
    return Mapper(Setup.of(**PIX, regions=regions, store=tmp_path / "store", **paying), **more)


def photos():
    """Return rows: black is of nobody, and of the white ones a process dies, before and after it paid."""
    given = [png(0), plain(0), b"no photo", plain(255), None, png(0), plain(254), *map(png, range(1, 6))]
    return [(f"p{number:02}", photo) for number, photo in enumerate(given)]


def test_every_row_has_one_outcome_and_one_debit_though_workers_die(spark, tmp_path):
    ledger = made(tmp_path / "budget.db", limit=99)
    frame = spark.createDataFrame(photos(), "path string, bytes binary").repartition(3, "path")
    first, again = (
        sorted(frame.mapInArrow(mapper(tmp_path).batches, SCHEMA).collect(), key=lambda row: row["path"])
        for _ in range(2)
    )
    assert sorted(path.name for path in (tmp_path / "died").iterdir()) == ["before", "paid"]
    assert first == again
    assert [row["path"] for row in first] == [path for path, _ in photos()]
    statuses = [row["status"] for row in first]
    assert [statuses[place] for place in (1, 2, 4)] == ["no_region", "failed", "failed"]
    assert Counter(statuses) == {"released": 9, "failed": 2, "no_region": 1}
    assert releases(tmp_path / "store") == {row["release"] for row in first if row["release"]}
    assert len({row["release"] for row in first if row["release"]}) == 9
    assert paid(ledger) == (9, 0)


def test_pandas_get_the_same(spark, tmp_path):
    ledger = made(tmp_path / "budget.db", limit=9)
    frame = spark.createDataFrame([*photos()[:3], ("p5", png(0))], "path string, bytes binary")
    rows = frame.mapInPandas(mapper(tmp_path).frames, SCHEMA).collect()
    assert [row["status"] for row in rows] == ["released", "no_region", "failed", "released"]
    assert paid(ledger) == (2, 0)
