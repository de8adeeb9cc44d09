"""Finds the campaign of an advertisement."""

import json

ADS, CAMPAIGNS = 1000, 100
CAMPAIGN_OF = {f"ad-{ad:04}": f"campaign-{ad % CAMPAIGNS:02}" for ad in range(ADS)}


def handle(req: str) -> str:
    """Return the view's campaign, number and time."""
    view = json.loads(req)
    return json.dumps(
        {"campaign": CAMPAIGN_OF[view["ad"]], "event": view["event"], "time": view["time"]}
    )
