"""Which tasks are run again where a wrap was lost: those whose outputs are needed and gone."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping


def to_run_again(
    lost: str,
    wrap_of: Mapping[int, str],
    needs: Callable[[int], Collection[int]],
    takers: Mapping[int, Collection[str]],
    has: Mapping[str, Collection[int]],
    runs: Mapping[str, Collection[int]],
    wanted: Collection[int],
    home: str,
) -> dict[str, set[int]]:
    """Wrap -> its tasks that are to be run again, or for the first time.

    Parameters
    ----------
    lost
        The wrap that has nothing any more of the execution.
    wrap_of, needs, takers
        Of every task: its wrap, the tasks that have to end before it, the other wraps that wait
        for it.
    has
        Of every wrap that still takes part, the tasks that have ended as far as it knows, and whose
        objects it has. A wrap that is not here has ended all its tasks, and kept nothing, or is
        lost too.
    runs
        Of every such wrap the tasks that it runs, or has run: all of its own, if it has not begun
        once more. One that has to run others too begins again, with all of them.
    wanted
        The tasks whose objects the home waits for, beside those that its own tasks need.

    Examples
    --------
    A chain over three wraps: b's object has reached its consumer, c's has not.

    >>> chain = {1: [], 2: [1], 3: [2], 4: [3]}
    >>> places = {1: "home", 2: "far", 3: "far", 4: "home"}
    >>> takers = {1: ["far"], 2: [], 3: ["home"], 4: []}
    >>> has = {"home": {1}}
    >>> to_run_again("far", places, chain.__getitem__, takers, has, {"home": {1, 4}}, [4], "home")
    {'far': {2, 3}}
    """
    found: dict[str, set[int]] = {}
    gone = list[int]()
    used = {needed for task in wrap_of for needed in needs(task)}.union(wanted)
    for task, place in wrap_of.items():
        if place == lost:
            waiting = {*takers[task], *([home] if task in wanted else [])}
            missing = any(task not in has[taker] for taker in waiting if taker in has)
            if missing or task not in used:  # of what nobody uses nobody knows whether it ended
                gone.append(task)
    while gone:
        task = gone.pop()
        place = wrap_of[task]
        its = found.setdefault(place, set())
        if task not in its:
            its.add(task)
            gone += runs.get(place, ())
            # A wrap that runs it sends it again, or will have it.
            gone += [each for each in needs(task) if each not in runs.get(wrap_of[each], ())]
    return found
