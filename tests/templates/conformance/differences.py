UNMENDED: dict = {}
EXPECTED: dict = {}
UNMENDED_NEIGHBOURS: dict = {}
