"""The generated data set: users, movies with their cast, and earlier reviews.

It is the same on every machine. The functions only read it; they write to other keys.
"""

import json
from collections.abc import Iterator
from random import Random
from typing import Any

PREFIX = "movie-review:"
USERS, MOVIES, ACTORS = 400, 200, 300
REVIEWS_PER_USER, REVIEWS_PER_MOVIE, REVIEW_WORDS = 10, 20, 40
FIRST_ID = 20_000
EPOCH_MS = 1_704_067_200_000  # 2024-01-01; all reviews of the data set are older
HOUR_MS = 3_600_000
SEED, VERSION = 2024, "1"
WORDS = ("acting", "again", "beautiful", "brave", "camera", "classic", "clever", "cold", "dark",
         "dialogue", "drama", "dull", "ending", "fast", "friends", "funny", "ghost", "great",
         "journey", "light", "long", "music", "night", "plot", "quiet", "river", "scene", "slow",
         "story", "warm")  # fmt: skip


def username(user: int) -> str:
    """Return the name of the user with that number."""
    return f"user_{user:03}"


def title(movie: int) -> str:
    """Return the title of the movie with that number."""
    first, second = divmod(movie, len(WORDS))
    return f"The {WORDS[first].title()} {WORDS[second].title()}"


def cast_size(movie: int) -> int:
    """Return the number of a movie's actors: 1 to 20, growing with the movie's number."""
    return 1 + 20 * movie // MOVIES


def review(owner: str, number: int, random: Random) -> dict[str, Any]:
    """Return review `number` of an owner (a user or a movie); 0 is the latest."""
    return {
        "review_id": f"archive-{owner}-{number}",
        "rating": random.randrange(11),
        "text": " ".join(random.choices(WORDS, k=REVIEW_WORDS)),
        "timestamp_ms": EPOCH_MS - (number + 1) * HOUR_MS,
    }


def reviews(owner: str, count: int, random: Random) -> Iterator[tuple[str | int, ...]]:
    """Yield the Redis commands that write `count` reviews of an owner."""
    made = [review(owner, number, random) for number in range(count)]
    yield "DEL", f"{PREFIX}reviews-of:{owner}"
    yield "RPUSH", f"{PREFIX}reviews-of:{owner}", *(review["review_id"] for review in made)
    for found in made:
        yield "SET", f"{PREFIX}review:{found['review_id']}", json.dumps(found)


def commands() -> Iterator[tuple[str | int, ...]]:
    """Yield the Redis commands that write the data set."""
    random = Random(SEED)  # noqa: S311 - a data set that can be made again, not a secret
    for user in range(USERS):
        ident = FIRST_ID + user
        yield "HSET", f"{PREFIX}user-ids", username(user), ident
        yield "HSET", f"{PREFIX}user:{ident}", "username", username(user), "since_ms", EPOCH_MS
        yield from reviews(f"user-{ident}", REVIEWS_PER_USER, random)
    for movie in range(MOVIES):
        yield "HSET", f"{PREFIX}movie-ids", title(movie), movie
        yield "DEL", f"{PREFIX}cast:{movie}"
        yield "RPUSH", f"{PREFIX}cast:{movie}", *random.sample(range(ACTORS), cast_size(movie))
        yield from reviews(f"movie-{movie}", REVIEWS_PER_MOVIE, random)
