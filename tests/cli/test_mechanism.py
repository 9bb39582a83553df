"""`dpveil mechanism`: numbers in, numbers in range out, one document, and one line for every mistake."""

import json
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from command_lines import last
from dpveil.mechanisms.scalar import Geometric

QUERY = ["--range", "0:5", "--sensitivity", "1", "--epsilon", "0.5"]
GEOMETRIC = ["--mechanism", "geometric", *QUERY]
DATA = "name,age,answer\nada,34,yes\nben,51,no\ncleo,,yes\ndan,130,yes\n"
MEAN = ["--column", "age", "--query", "mean", "--range", "0:120", "--epsilon", "1", "--missing", "60"]


@pytest.fixture
def cli(shell):
    Path("data.csv").write_text(DATA, encoding="utf-8")

    return partial(shell, "mechanism")


def document(cli, *arguments):
    code, out, err = cli(*arguments, "--json")
    assert (code, err) == (0, "")
    return json.loads(out)


def refused(cli, *arguments):
    code, out, err = cli(*arguments)
    assert out == ""
    (line,) = err.splitlines()
    return code, line.removeprefix("dpveil: ")


# release


def test_several_answers_cost_several_times_as_much(cli):
    found = document(cli, "release", *GEOMETRIC, "--relation", "database-record", "1", "2", "5")
    assert len(found["responses"]) == 3
    assert (found["guarantee"]["kind"], found["guarantee"]["epsilon"]) == ("pure", 1.5)
    assert found["each"]["epsilon"] == 0.5
    assert (
        found["composition"]
        == "3 answers about the same records, 0.5 each: epsilon 1.5 in total (sequential)"
    )
    assert found["guarantee"]["scope"]["covers"].startswith("3 answers, each one number")
    _, out, _ = cli("release", *GEOMETRIC, "1", "2")
    assert "guarantee     1·d-privacy" in out
    assert "composition   2 answers about the same records, 0.5 each: epsilon 1 in total" in out
    free = document(cli, "release", "--mechanism", "laplace", "--range", ":", *QUERY[2:], "1", "2")
    assert (free["guarantee"]["epsilon"], free["guarantee"]["diameter"]) == (1, None)


def test_answers_may_be_negative(cli):
    given = ["--mechanism", "laplace", "--sensitivity", "1", "--epsilon", "30", "--seed", "4", "--json"]
    for allowed in (["--range=-5:5"], ["--range", "-5:5"]):
        code, out, _ = cli("release", "-3", *given, *allowed, "-.5", "-1e-3", "-1/2")
        assert code == 0
        assert np.allclose(json.loads(out)["responses"], [-3, -0.5, 0, -0.5], atol=0.5)
    code, line = refused(cli, "release", *GEOMETRIC, "--sed", "4", "3")
    assert (code, line) == (2, "no such option: --sed: see dpveil mechanism release --help")


def test_a_seed_repeats_and_is_not_for_publication(cli):
    one, two = (cli("release", *GEOMETRIC, "--seed", "7", "1", "2", "3", "4") for _ in range(2))
    assert one == two
    assert "NOT FOR PUBLICATION" in one[2]
    found = json.loads(cli("release", *GEOMETRIC, "--seed", "7", "3", "--json")[1])
    assert found["bits"] == "seeded"
    assert "NOT FOR PUBLICATION" in found["warnings"][0]
    different = {
        cli("release", *GEOMETRIC, "1", "2", "3", "4", "5", "0", "1", "2", "3", "4")[1] for _ in range(9)
    }
    assert len(different) > 1  # all the same with probability below 1e-16


# matrix


def test_matrix_as_a_document(cli):
    found = document(cli, "matrix", *GEOMETRIC)
    expected = Geometric(range=(0, 5), sensitivity=1, epsilon="0.5").matrix()
    assert np.allclose(found["matrix"], expected, rtol=1e-12)
    assert np.allclose(np.sum(found["matrix"], axis=0), 1)
    assert found["responses"] == found["answers"] == [0, 1, 2, 3, 4, 5]
    assert found["certificate"]["epsilon"] == pytest.approx(0.5, rel=1e-9)
    assert found["certificate"]["epsilon"] <= 0.5
    assert found["certificate"]["overall"] == pytest.approx(2.5, rel=1e-9)
    assert found["guarantee"]["kind"] == "metric"


# query


def test_query_a_mean(cli):
    found = document(cli, "query", "data.csv", *MEAN)
    assert 0 <= found["response"] <= 120
    assert (found["column"], found["query"], found["rows"]) == ("age", "mean", 4)
    assert found["guarantee"]["relation"] == {"name": "database-record"}
    assert "the number of rows, 4" in found["guarantee"]["scope"]["in_the_clear"][0]
    assert found["parameters"]["sensitivity"] == 30
    assert (found["bits"], found["warnings"]) == ("secure", [])
    code, out, err = cli("query", "data.csv", *MEAN, "--mechanism", "laplace", "--seed", "3")
    assert code == 0
    assert out.startswith("mean of age: ")
    assert "mechanism     laplace, range 0:120" in out
    assert found["expected_error"] == pytest.approx(21.64, abs=0.1)  # over the public range, not the data
    assert "error         2" in out
    assert "guarantee     1-DP, database-record" in out
    assert "NOT FOR PUBLICATION" in err


def test_query_others(cli):
    answer = ["--column", "answer", "--query", "count", "--epsilon", "30"]
    found = document(cli, "query", "data.csv", *answer, "--equals", "yes")
    assert found["response"] == 3  # wrong with probability below 1e-12
    age = ["--column", "age", "--epsilon", "60"]
    found = document(cli, "query", "data.csv", *age, "--query", "count", "--above", "40", "--below", "100")
    assert found["response"] == 1
    bins = ["--query", "histogram", "--range", "0:120", "--missing", "60"]
    found = document(cli, "query", "data.csv", *age, *bins, "--bins", "0,50,120")
    assert (found["responses"], found["edges"]) == ([1, 3], [0, 50, 120])
    found = document(cli, "query", "data.csv", *age, *bins, "--bins", "3", "--mechanism", "geometric")
    assert found["responses"] == [1, 2, 1]
    assert found["parameters"]["epsilon"] == 30  # half for each of the two bins that a record moves
    _, out, _ = cli("query", "data.csv", *age, *bins, "--bins", "3")
    assert "80 to 120  1" in out
    found = document(
        cli, "query", "data.csv", *age, "--query", "standard-deviation", "--range", "0:120", "--missing", "60"
    )
    assert found["response"] == pytest.approx(np.std([34, 51, 60, 120]), abs=6)


def test_what_is_wrong_with_values_is_said_on_stderr_alone(cli):
    code, out, err = cli("query", "data.csv", *MEAN[:-2], "--json")
    assert code == 4
    assert json.loads(out)["error"] == "data.csv, column 'age': values are missing"
    assert "3" not in out
    private, told = err.splitlines()
    assert private == "dpveil: private, not for publication: data.csv, column 'age': missing in row 3 of 4"
    assert told.endswith("a public number in the range, with --missing")
    code, out, err = cli("query", "data.csv", *last(*MEAN, "--column", "name", "--json"))
    assert code == 4
    assert "ada" not in out
    assert "data.csv, column 'name': row 1 holds 'ada'" in err
