"""A Node.js handler in the reference run: each call has a Node process of its own."""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
from base64 import b64decode, b64encode
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from chiron.workflow.errors import ChironError
from chiron.wrap.core.statemachine.errors import StatesError, cause_of


class Answer(NamedTuple):
    """The status and the body that a handler answers with."""

    status: int
    body: bytes


#: Reads a call on stdin, and writes what came of it to the descriptor ANSWERS.
_PROGRAM = """
const fs = require('fs')
const { file, style, body } = JSON.parse(fs.readFileSync(0))
const given = Buffer.from(body, 'base64')
const text = given.toString()
const raw = process.env.RAW_BODY === 'true'
const set = raw ? process.env.MAX_RAW_SIZE : process.env.MAX_JSON_SIZE
const limit = (set || '100kb').toLowerCase()
const most = parseFloat(limit) * (limit.endsWith('kb') ? 1024 : limit.endsWith('mb') ? 1 << 20 : 1)
let value = text
try {
  const read = JSON.parse(text)
  if (typeof read === 'object' && read) value = read
} catch {}
const isText = Buffer.from(text).equals(given)
const counted = raw || isText && style !== 'node-classic'
const refused = counted && given.length > (raw || typeof value === 'object' ? most : 100 << 10)
if (raw) value = given
else if (!isText) value = { 'node-callback': given, node22: undefined, node: {} }[style]
const tell = told => { fs.writeSync(ANSWERS, JSON.stringify(told)); process.reallyExit(0) }
const fail = error => {
  if (context.code == 200) context.code = 500
  failed(error)
}
const failed = error => error instanceof Error
  ? tell({ error: error.name, message: error.message, stack: error.stack })
  : context.code < 400
  ? tell({ error: 'Error', message: String(error), stack: '' })
  : tell({ status: context.code, body: encoded(String(error)) })
const encoded = value => Buffer.from(value).toString('base64')
const succeed = value => {
  const plain = typeof value === 'string' || Buffer.isBuffer(value)
  const sent = value === undefined || value === null ? '' : plain ? value : JSON.stringify(value)
  tell({ status: context.code, body: encoded(sent) })
}
const answer = (error, value) => error ? failed(error) : succeed(value)
const context = {
  code: 200,
  values: {},
  status(code) { if (!code) return this.code; this.code = code; return this },
  headers(values) { if (!values) return this.values; this.values = values; return this },
  succeed,
  fail
}
const event = { body: value, headers: {}, method: 'POST', query: {}, path: '/' }
process.on('uncaughtException', failed)
if (refused) tell({ status: 413, body: encoded('PayloadTooLargeError: request entity too large') })
const handle = require(file)
const classic = style === 'node-classic'
const back = classic ? handle(text, answer) : handle(event, context, answer)
const waits = classic || style === 'node-callback' || handle.length > 2
if ((back && back.then) || !waits) Promise.resolve(back).then(succeed, failed)
"""


#: A line of a stack trace: the function, if it has a name, the file and the line.
_FRAME = re.compile(r"^    at (?:(.*) \()?(/[^()]*):(\d+):\d+\)?$", re.MULTILINE)


def called(folder: str, style: str, environment: Mapping[str, str], body: bytes) -> Answer:
    """What the handler in `folder` answers to `body`.

    Raises StatesError as a wrap says it, ``no-node`` where there is no Node.js.
    """
    told = {"file": f"{folder}/handler", "style": style, "body": b64encode(body).decode()}
    ours, theirs = os.pipe()
    with os.fdopen(ours, "rb") as answers:
        with os.fdopen(theirs, "wb") as end:
            program = _PROGRAM.replace("ANSWERS", str(end.fileno()))
            try:
                process = subprocess.Popen(
                    ["node", "-e", program],
                    cwd=Path(folder).parent,
                    env=environment,
                    stdin=subprocess.PIPE,
                    stdout=sys.stderr,
                    pass_fds=[end.fileno()],
                )
            except FileNotFoundError:
                message = "Node.js is not installed here: node is not on the PATH"
                raise ChironError("no-node", message) from None
        with process, process.stdin or contextlib.nullcontext() as given:
            if given is not None:
                given.write(json.dumps(told).encode())
                given.close()
            said = answers.read()
    if not said:
        raise StatesError("exited", cause_of("exited", f"node ended with {process.returncode}"))
    found = json.loads(said)
    if "error" in found:
        own = f"{folder}/"
        frames = [
            f"{file.removeprefix(own)}:{line} in {name or '<anonymous>'}"
            for name, file, line in reversed(_FRAME.findall(found["stack"]))
            if file.startswith(own) and "/node_modules/" not in file
        ]
        raise StatesError(found["error"], cause_of(found["error"], found["message"], frames))
    return Answer(found["status"], b64decode(found["body"]))
