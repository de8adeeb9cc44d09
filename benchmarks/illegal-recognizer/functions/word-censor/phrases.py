"""The forbidden phrases."""

PHRASES = [
    "ammunition", "assault", "bets", "blackmail", "bombs", "bribe", "burglary", "contraband",
    "counterfeit", "drugs", "explosives", "fake papers", "fake passport", "fraud", "gambling",
    "grenades", "gun powder", "hostage", "kidnapping", "loan shark", "money laundering",
    "narcotics", "pistols", "poison", "protection money", "ransom", "revolver", "rifle", "robbery",
    "secret meeting", "sharp knives", "smuggling", "stolen goods", "stolen jewellery", "theft",
    "trafficking", "weapons",
]  # fmt: skip
