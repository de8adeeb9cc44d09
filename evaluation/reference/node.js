// Calls a Node.js handler in the reference run: see chiron.evaluation.reference.handlers.
'use strict'

const fs = require('fs')
const [folder, style, answers] = process.argv.slice(2)
const given = fs.readFileSync(0)
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
const tell = told => { fs.writeSync(Number(answers), JSON.stringify(told)); process.reallyExit(0) }
const fail = error => {
  if (context.code == 200) context.code = 500
  failed(error)
}
const failed = error => error instanceof Error
  ? tell({ error: error.name, message: error.message, frames: frames(error.stack) })
  : context.code < 400
  ? tell({ error: 'Error', message: String(error), frames: [] })
  : tell({ status: context.code, body: encoded(String(error)) })
// The functions, files and lines of the handler's own files, the innermost last.
const FRAME = /^ {4}at (?:(.*) \()?(\/[^()]*):(\d+):\d+\)?$/gm
const frames = stack => [...stack.matchAll(FRAME)].reverse()
  .filter(([, , file]) => file.startsWith(`${folder}/`) && !file.includes('/node_modules/'))
  .map(([, name, file, line]) => `${file.slice(folder.length + 1)}:${line} in ${name || '<anonymous>'}`)
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
const handle = require(`${folder}/handler`)
const classic = style === 'node-classic'
const back = classic ? handle(text, answer) : handle(event, context, answer)
const waits = classic || style === 'node-callback' || handle.length > 2
if ((back && back.then) || !waits) Promise.resolve(back).then(succeed, failed)
