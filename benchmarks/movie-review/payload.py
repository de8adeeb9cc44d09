"""Generates the request of the workflow: a review of a movie with few or many actors."""

from random import Random
from typing import Any

from . import dataset

# size -> number of the movie (11 actors: small), and words of the review
SIZES = {"test": (5, 20), "small": (100, 120), "large": (199, 1500)}
REVIEWER = 42
RATING = 8


def payload(size: str) -> dict[str, Any]:
    """Return the request of that size: test, small or large."""
    movie, words = SIZES[size]
    random = Random(size)  # noqa: S311 - a data set that can be made again, not a secret
    return {
        "username": dataset.username(REVIEWER),
        "title": dataset.title(movie),
        "rating": RATING,
        "timestamp_ms": dataset.EPOCH_MS + dataset.HOUR_MS,
        "text": " ".join(random.choices(dataset.WORDS, k=words)),
    }
