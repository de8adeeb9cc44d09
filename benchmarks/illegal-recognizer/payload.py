"""Generates the request of the workflow: a picture of a person, blood and a sign about weapons.

The same size always gives the same picture.
"""

from random import Random
from typing import Any

from .functions.extract.font import COLUMNS, LEADING, LETTERS, PITCH, ROWS
from .shared.picture import Picture, encode

SIZES = {"test": (96, 64), "small": (160, 120), "large": (320, 240)}
SKIN, BLOOD, PLATE, INK = (205, 150, 120), (175, 25, 30), (24, 28, 36), (245, 245, 240)
NOISE = 8  # a colour is lighter by less than this
SIGN_PERCENT = 42  # of the height, at the bottom
DROPS = 60
SPOTTED, SCRATCHED = 0.15, 0.16  # share of letters with a wrong pixel, and with rows missing
TEXT = (
    "VERKAUFE ALTE WAFFEN UND SCHARFE MESSER JEDEN ABEND IM HAFEN NEBEN DEM MARKT NUR BAR BITTE "
    "ALLEIN KOMMEN HEUTE FRISCHE BLUMEN UND KUCHEN IM GROSSEN GARTEN HINTER DEM BAHNHOF KINDER "
    "WILLKOMMEN MUSIK UND TANZ JEDEN SAMSTAG AM FLUSS BIETE GESTOHLENE SCHMUCK UND FALSCHE "
    "PAPIERE TREFFEN NACHT UNTER DER BRUECKE KEINE FRAGE SUCHE ZIMMER IN DER STADT MIT FENSTER "
    "ZU DEM PARK VERBOTEN IST DAS FEUER IM WALD DANKE FUER ZWEI PISTOLEN OHNE PULVER"
)


class Canvas:
    """A picture to paint on; positions and sizes are in pixels."""

    def __init__(self, width: int, height: int) -> None:
        """Paint a sky above a meadow."""
        self.width, self.height = width, height
        self.colours = [
            (70 + 40 * y // height, 120 + 30 * y // height, 170 - 80 * y // height)
            for y in range(height)
            for _ in range(width)
        ]

    def dot(self, x: int, y: int, colour: tuple[int, int, int]) -> None:
        """Paint a pixel, if it is inside the picture."""
        if 0 <= x < self.width and 0 <= y < self.height:
            self.colours[y * self.width + x] = colour

    def ellipse(
        self, x: float, y: float, wide: float, high: float, colour: tuple[int, int, int]
    ) -> None:
        """Paint an ellipse around (x, y) with the radii `wide` and `high`."""
        for row in range(int(y - high), int(y + high) + 1):
            for column in range(int(x - wide), int(x + wide) + 1):
                if ((column - x) / wide) ** 2 + ((row - y) / high) ** 2 <= 1:
                    self.dot(column, row, colour)

    def picture(self, random: Random) -> Picture:
        """Return the painted picture with noise."""
        flat = [value for colour in self.colours for value in colour]
        noise = random.randbytes(len(flat))
        pixels = bytes(v + n % NOISE for v, n in zip(flat, noise, strict=True))
        return Picture(self.width, self.height, pixels)


def lines_of(width: int, count: int) -> list[str]:
    """Return the first `count` lines of the text, of at most `width` letters each."""
    lines = [""]
    for word in TEXT.split():
        if len(lines[-1]) + len(word) >= width:
            lines.append("")
        lines[-1] += f" {word}" if lines[-1] else word
    return lines[:count]


def write(canvas: Canvas, x: int, y: int, letter: str, random: Random) -> None:
    """Paint a letter, which may be spotted or scratched."""
    rows = list(LETTERS[letter])
    fault = random.random()
    if fault < SCRATCHED:
        rows[random.randrange(1, ROWS - 1)] = 0
        rows[random.randrange(1, ROWS - 1)] = 0
    elif fault < SCRATCHED + SPOTTED:
        rows[random.randrange(ROWS)] ^= 1 << random.randrange(COLUMNS)
    for down, row in enumerate(rows):
        for across in range(COLUMNS):
            if row >> (COLUMNS - 1 - across) & 1:
                canvas.dot(x + across, y + down, INK)


def paint_sign(canvas: Canvas, random: Random) -> None:
    """Paint a dark plate along the bottom and write on it."""
    high = canvas.height * SIGN_PERCENT // 100
    top = canvas.height - high
    for y in range(top, canvas.height):
        for x in range(canvas.width):
            canvas.dot(x, y, PLATE)
    lines = lines_of((canvas.width - 4) // PITCH, (high - 4) // LEADING)
    for number, line in enumerate(lines):
        for place, letter in enumerate(line):
            if letter != " ":
                write(canvas, 3 + place * PITCH, top + 3 + number * LEADING, letter, random)


def payload(size: str) -> dict[str, Any]:
    """Return the request of that size: test, small or large."""
    width, height = SIZES[size]
    random = Random(size)  # noqa: S311 - a picture that can be made again, not a secret
    canvas = Canvas(width, height)
    canvas.ellipse(width * 0.3, height * 0.13, width * 0.08, height * 0.12, SKIN)
    canvas.ellipse(width * 0.3, height * 0.4, width * 0.16, height * 0.17, SKIN)
    canvas.ellipse(width * 0.3, height * 0.3, width * 0.28, height * 0.05, SKIN)
    for _ in range(DROPS):
        x, y = random.uniform(0.6, 0.95) * width, random.uniform(0.05, 0.5) * height
        radius = random.uniform(0.005, 0.03) * width
        canvas.ellipse(x, y, radius, radius, BLOOD)
    paint_sign(canvas, random)
    return {"name": f"sign-{size}.ppm", "image": encode(canvas.picture(random))}
