"""Generates the request of the workflow: questions about stations.

An equal number of questions always gives the same questions.
"""

from random import Random

QUESTIONS = {"test": 2, "small": 10, "large": 100}


def payload(size: str) -> list[str]:
    """Return the request of that size: test, small or large."""
    random = Random(QUESTIONS[size])  # noqa: S311 - a data set that can be made again, not a secret
    return [
        f"What is quantity {random.randrange(100)} at station {random.randrange(100)}?"
        for _ in range(QUESTIONS[size])
    ]
