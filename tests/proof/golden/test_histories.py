"""The examples decide today what they decided when their histories were kept."""

import subprocess

from tests.proof.golden.revisions import start


def test_the_histories_of_all_examples_are_decided_and_folded_as_they_were() -> None:
    replaying = start(None, "tests.proof.golden.examples", stdout=subprocess.PIPE)
    told, _ = replaying.communicate(timeout=60)

    assert replaying.returncode == 0, "if the change was meant: python -m tests.proof.golden.examples --write"
    assert len(told.splitlines()) == 10
