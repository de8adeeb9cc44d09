UNMENDED: dict = {}
EXPECTED: dict = {}
