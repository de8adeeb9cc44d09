"""Generates the request of the workflow: a post by a user with few or many followers."""

from random import Random
from typing import Any

from . import dataset

# size -> rank of the author (10 followers: small), numbers of words, mentions, links and media
SIZES = {"test": (150, 20, 1, 1, 1), "small": (21, 60, 3, 3, 4), "large": (1, 600, 8, 8, 8)}
MEDIA_TYPES = ("jpg", "png", "mp4")


def payload(size: str) -> dict[str, Any]:
    """Return the request of that size: test, small or large."""
    author, words, mentions, links, media = SIZES[size]
    random = Random(size)  # noqa: S311 - a data set that can be made again, not a secret
    text = random.choices(dataset.WORDS, k=words)
    mentioned = random.sample(range(200, dataset.USERS), mentions)
    text += [f"@{dataset.name(user)}" for user in mentioned]
    text += [f"https://example.org/{random.choice(dataset.WORDS)}/{n}" for n in range(links)]
    random.shuffle(text)
    return {
        "username": dataset.name(author),
        "post_type": "post",
        "timestamp_ms": dataset.EPOCH_MS + dataset.HOUR_MS,
        "text": " ".join(text),
        "media": [
            {"id": random.randrange(10**9), "type": random.choice(MEDIA_TYPES)}
            for _ in range(media)
        ],
    }
