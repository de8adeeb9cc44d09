"""The functions of illegal-recognizer see, read, translate and blur what is in a picture."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

SKIN, RED, GREY, DARK, LIGHT = (
    bytes(colour)
    for colour in [(205, 150, 120), (200, 20, 20), (90, 90, 90), (20, 20, 20), (250, 250, 250)]
)


@pytest.fixture
def folder(benchmarks: Path) -> Path:
    """The folder of the functions."""
    return benchmarks / "illegal-recognizer" / "functions"


class Canvas:
    """A picture of one colour to paint rectangles and letters on."""

    def __init__(self, folder: Path, functions: SimpleNamespace, colour: bytes = GREY) -> None:
        self.pictures = functions.load(folder / "extract", "picture")
        self.font = functions.load(folder / "extract", "font")
        self.width, self.height = 80, 40
        self.pixels = bytearray(colour * (self.width * self.height))

    def paint(self, x: int, y: int, width: int, height: int, colour: bytes) -> None:
        """Paint the box in the colour."""
        for row in range(y, y + height):
            start = 3 * (row * self.width + x)
            self.pixels[start : start + 3 * width] = colour * width

    def write(self, x: int, y: int, text: str) -> None:
        """Write the letters, the first one's corner at (x, y)."""
        for place, letter in enumerate(text):
            for down, row in enumerate(self.font.LETTERS.get(letter, ())):
                for across in range(5):
                    if row >> (4 - across) & 1:
                        self.paint(x + 6 * place + across, y + down, 1, 1, LIGHT)

    def request(self) -> dict[str, Any]:
        """Return what upload answers of the picture."""
        picture = self.pictures.Picture(self.width, self.height, bytes(self.pixels))
        return {"id": "one", "image": self.pictures.encode(picture)}


@pytest.fixture
def canvas(folder: Path, functions: SimpleNamespace) -> Canvas:
    """A grey picture of 80 x 40 pixels."""
    return Canvas(folder, functions)


@pytest.fixture
def ask(folder: Path, functions: SimpleNamespace) -> Any:
    """Calls a function with a request as JSON and returns its answer."""
    return lambda name, request: json.loads(functions.call(folder / name, json.dumps(request)))


def words(ask: Any, canvas: Canvas) -> list[tuple[str, list[int]]]:
    """Return what extract reads, each word with its box."""
    answer = ask("extract", canvas.request())
    return [(word["text"], word["box"]) for word in answer["words"]]


def test_what_the_payload_shows_and_says_is_found_and_can_be_read_no_more(
    benchmarks: Path, ask: Any, functions: SimpleNamespace
) -> None:
    folder = benchmarks / "illegal-recognizer"
    answer = json.loads(functions.run(folder, (folder / "payload.json").read_text()))
    reasons = {finding["reason"] for finding in answer["blurred"]}
    assert reasons == {"skin", "blood", "weapons", "sharp knives"}
    assert answer["text"].startswith("selling old weapons and sharp knives every evening")
    left = [word["text"] for word in ask("extract", answer)["words"]]
    assert left[:4] == ["VERKAUFE", "ALTE", "UND", "JEDEN"]
    assert ask("adult-detector", answer)["skin_pixels"] > 0  # blurred, not removed


def test_skin_is_found_with_its_box(canvas: Canvas, ask: Any) -> None:
    canvas.paint(70, 5, 10, 20, SKIN)  # up to the edge: the next row is no neighbour
    canvas.paint(0, 10, 10, 10, SKIN)
    canvas.paint(30, 30, 5, 5, SKIN)  # too small
    canvas.paint(40, 0, 20, 20, RED)
    answer = ask("adult-detector", canvas.request())
    assert answer["skin_pixels"] == 325
    assert [finding["box"] for finding in answer["findings"]] == [[70, 5, 10, 20], [0, 10, 10, 10]]


def test_blood_is_red_and_ragged(canvas: Canvas, ask: Any) -> None:
    for x, y in [(17, 9), (20, 12), (25, 10), (28, 13)]:
        canvas.paint(x, y, 2, 2, RED)
    answer = ask("violence-detector", canvas.request())
    assert [finding["box"] for finding in answer["findings"]] == [[16, 8, 16, 8]]
    assert answer["redness"] == 16 * 180


@pytest.mark.parametrize(("x", "y"), [(0, 0), (3, 11), (74 - 18, 33)])
def test_text_is_read_wherever_it_stands(x: int, y: int, canvas: Canvas, ask: Any) -> None:
    canvas.write(x, y, "AB Z")
    (one, one_box), (two, two_box) = words(ask, canvas)
    assert (one, two) == ("AB", "Z")
    assert one_box == [x - 1, y - 1, 13, 9]
    assert two_box == [x + 17, y - 1, 7, 9]


def test_words_are_translated_misread_ones_too(ask: Any) -> None:
    read = ["HAFEN", "IM", "?AF?N", "BAHNHFO", "XYLOPHON"]
    request = {"id": "one", "words": [{"text": text, "box": [1, 2, 3, 4]} for text in read]}
    answer = ask("translate", request)
    english = ["harbour", "in the", "harbour", "station", "xylophon"]
    assert [word["english"] for word in answer["words"]] == english
    assert [word["box"] for word in answer["words"]] == [[1, 2, 3, 4]] * 5


@pytest.mark.parametrize(
    ("english", "found"),
    [
        (["old", "weapons", "here"], {1: "weapons"}),
        (["old", "wepons", "here"], {1: "weapons"}),
        (["the", "sharp", "life"], {}),
        (["the", "sharp", "knifes"], {1: "sharp knives", 2: "sharp knives"}),
        (["the", "harp", "knives"], {1: "sharp knives", 2: "sharp knives"}),
        (["fresh fish", "gun powder"], {1: "gun powder"}),
        (["gun", "tea", "powder"], {}),
        ([], {}),
    ],
)
def test_forbidden_phrases_are_found(english: list[str], found: dict[int, str], ask: Any) -> None:
    given = [{"english": word, "box": [place]} for place, word in enumerate(english)]
    answer = ask("word-censor", {"id": "one", "words": given})
    assert answer["text"] == " ".join(english)
    assert {f["box"][0]: f["reason"] for f in answer["findings"]} == found


def test_mosaic_blurs_the_boxes_and_nothing_else(canvas: Canvas, ask: Any) -> None:
    for x in range(0, 80, 2):
        canvas.paint(x, 0, 1, 40, LIGHT)
    before = canvas.request()
    findings = [
        {"reason": "skin", "box": [10, 5, 30, 20]},
        {"reason": "bomb", "box": [70, 30, 20, 20]},
    ]
    answer = ask("mosaic", [before, {"id": "one", "findings": findings}])
    assert answer["blurred"] == findings
    pixels = canvas.pictures.decode(answer["image"]).pixels
    inside = set()
    for y in range(40):
        for x in range(80):
            start = 3 * (y * 80 + x)
            if (10 <= x < 40 and 5 <= y < 25) or (x >= 70 and y >= 30):
                inside |= set(pixels[start : start + 3])
            else:
                assert pixels[start : start + 3] == canvas.pixels[start : start + 3]
    assert min(inside) > min(GREY) + 40
    assert max(inside) < max(LIGHT) - 40
