"""The kept inputs of the fuzzers: each is accepted or an InputError, as it was when it was kept."""

from __future__ import annotations

import random

import pytest
from mutate import mutate

from fuzz.targets import TARGETS, attempt, seeds


@pytest.mark.parametrize("target", TARGETS)
def test_corpus(target: str) -> None:
    for data in seeds(target):
        attempt(target, data)


@pytest.mark.parametrize("target", TARGETS)
def test_whole_files_are_accepted(target: str) -> None:
    """Without this a target that refuses everything would pass."""
    assert any(attempt(target, data) for data in seeds(target)[:3])


@pytest.mark.parametrize("target", TARGETS)
def test_a_few_changes(target: str) -> None:
    rng, start = random.Random(target), seeds(target)
    for _ in range(30):
        data = rng.choice(start)
        for _ in range(rng.choice([1, 1, 2, 4])):
            data = mutate(data, rng)
        attempt(target, data)
