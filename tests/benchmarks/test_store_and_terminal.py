import doctest
import math

import pytest

from benchmarks import store, terminal


def test_a_record_of_another_schema_is_refused(tmp_path):
    for text in ('{"schema": 999}', "[]"):
        (tmp_path / "x.json").write_text(text)
        with pytest.raises(ValueError, match="not a benchmark record"):
            store.load(tmp_path / "x.json")


def test_nan_is_refused_and_writes_nothing(tmp_path):
    with pytest.raises(ValueError, match="JSON"):
        store.save(tmp_path / "x.json", {"value": math.nan})
    assert list(tmp_path.iterdir()) == []


def test_default_names_sort_by_time():
    assert store.default_path(0).name == "run-19700101-000000.json"
    assert store.default_path(1e9).name < store.default_path(1.5e9).name


def test_examples():
    assert doctest.testmod(terminal).failed == 0


@pytest.mark.parametrize(("value", "text"), [(9.9996e-4, "1.00 ms"), (9.994e-7, "999 ns"), (61.0, "61.0 s"),
                                             (-2e-6, "-2.00 us")])  # fmt: skip
def test_durations(value, text):
    assert terminal.seconds(value) == text


def test_table_is_aligned():
    assert terminal.table(["name", "n"], [["a", "10"], ["long name", "7"]]).splitlines() == [
        "| name      |  n |",
        "|-----------|---:|",
        "| a         | 10 |",
        "| long name |  7 |",
    ]
