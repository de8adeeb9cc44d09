"""The generated data set: users, their followers, and earlier posts.

It is the same on every machine. The functions only read it; they write to other keys.
"""

import json
from collections.abc import Iterator
from random import Random
from typing import Any

PREFIX = "social-network:"
USERS, POSTS_PER_USER, POST_WORDS = 500, 10, 30
MOST_FOLLOWERS = 200
FIRST_ID = 10_000
EPOCH_MS = 1_704_067_200_000  # 2024-01-01; all posts of the data set are older
HOUR_MS = 3_600_000
SEED, VERSION = 2024, "1"
WORDS = ("after", "again", "bread", "bridge", "cat", "coffee", "evening", "found", "garden",
         "good", "green", "harbour", "home", "later", "light", "long", "morning", "music", "new",
         "old", "photo", "rain", "river", "slow", "snow", "street", "sun", "train", "walk",
         "window")  # fmt: skip


def name(user: int) -> str:
    """Return the name of the user with that rank; rank 0 is the most popular."""
    return f"user_{user:03}"


def followers(user: int) -> list[int]:
    """Return the ids of a user's followers; their number follows Zipf's law by rank."""
    random = Random(SEED + user)  # noqa: S311 - a data set that can be made again, not a secret
    others = [other for other in range(USERS) if other != user]
    count = 1 + MOST_FOLLOWERS // (user + 1)
    return sorted(FIRST_ID + other for other in random.sample(others, count))


def post(user: int, number: int, random: Random) -> dict[str, Any]:
    """Return a user's post number `number`, 0 for the latest before the data set's end."""
    return {
        "post_id": f"archive-{FIRST_ID + user}-{number}",
        "creator": {"user_id": FIRST_ID + user, "username": name(user)},
        "text": " ".join(random.choices(WORDS, k=POST_WORDS)),
        "timestamp_ms": EPOCH_MS - (number + 1) * HOUR_MS,
    }


def commands() -> Iterator[tuple[str | int, ...]]:
    """Yield the Redis commands that write the data set."""
    for user in range(USERS):
        ident, random = FIRST_ID + user, Random(SEED * USERS + user)  # noqa: S311 - as above
        posts = [post(user, number, random) for number in range(POSTS_PER_USER)]
        yield "HSET", f"{PREFIX}ids", name(user), ident
        yield ("HSET", f"{PREFIX}user:{name(user)}", "user_id", ident,
               "first_name", random.choice(WORDS).title(), "since_ms", EPOCH_MS)  # fmt: skip
        yield "DEL", f"{PREFIX}followers:{ident}", f"{PREFIX}posts-of:{ident}"
        yield "RPUSH", f"{PREFIX}followers:{ident}", *followers(user)
        yield "RPUSH", f"{PREFIX}posts-of:{ident}", *(post["post_id"] for post in posts)
        for found in posts:
            yield "SET", f"{PREFIX}post:{found['post_id']}", json.dumps(found)
