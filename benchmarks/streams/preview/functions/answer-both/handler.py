"""Returns both inputs."""

import json


def handle(event, context):
    return {"body": json.dumps(json.loads(event.body)), "statusCode": 200}
