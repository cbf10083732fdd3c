"""The tests fail for the right reason: each of these defects is noticed by a named test."""

import os
import subprocess
import sys

import pytest

from tests.conftest import ROOT
from tests.helpers.mutations import MUTATIONS, NOTICED, run_test


@pytest.mark.slow
@pytest.mark.parametrize("name", MUTATIONS)
def test_defect_is_noticed(name, tmp_path):
    run_test(MUTATIONS[name])  # without the defect
    environment = {**os.environ, "TWINGRAD_CACHE": str(tmp_path), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-m", "tests.helpers.mutations", name],
        cwd=ROOT, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == NOTICED, f"{MUTATIONS[name].test} does not notice {name!r}\n{done.stdout}{done.stderr}"


def test_defects_change_what_is_there_and_name_tests_that_are_there():
    command = [sys.executable, "-m", "tests.helpers.mutations"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_there_are_enough():
    assert len(MUTATIONS) >= 20
