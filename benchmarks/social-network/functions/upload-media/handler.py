"""Makes the paths of the post's media; only computes."""

import json

FOLDERS = {"jpg": "image", "png": "image", "gif": "image", "mp4": "video"}


def handle(req: str) -> str:
    """Return id, type and path of every medium; raises ValueError for an unknown type."""
    media = json.loads(req)["media"]
    unknown = sorted({medium["type"] for medium in media} - set(FOLDERS))
    if unknown:
        raise ValueError(f"unknown media types: {', '.join(unknown)}")
    return json.dumps(
        {
            "media": [
                {
                    "media_id": medium["id"],
                    "media_type": medium["type"],
                    "path": f"/{FOLDERS[medium['type']]}/{medium['id']:09}.{medium['type']}",
                }
                for medium in media
            ]
        }
    )
