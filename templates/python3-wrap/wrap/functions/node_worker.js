// Runs the Node.js handlers of one process of a wrap, all on one event loop.
//
// It listens on the descriptor that it is given. A connection begins with the token, and has one call at a time: JSON,
// then a body, each after its length. What handlers print goes out in lines with their names.
'use strict'

const { AsyncLocalStorage } = require('async_hooks')
const fs = require('fs')
const net = require('net')
const querystring = require('querystring')
const { Writable } = require('stream')

const HEAD = 12
const TOKEN = process.env.CHIRON_NODE_TOKEN
delete process.env.CHIRON_NODE_TOKEN
// A line of the log that is longer is broken.
const LONGEST_LINE = 1 << 15

// What the code that runs belongs to: a run, or the import of a handler.
const current = new AsyncLocalStorage()
const handlers = new Map()

class Exited extends Error {}

class Run {
  constructor(name, execution = '') {
    this.prefix = `[${execution ? `${name} ${execution}` : name}] `
    this.begun = ''
    this.fail = null
  }

  print(text) {
    const lines = (this.begun + text).split('\n')
    this.begun = lines.pop()
    while (this.begun.length > LONGEST_LINE) {
      lines.push(this.begun.slice(0, LONGEST_LINE))
      this.begun = this.begun.slice(LONGEST_LINE)
    }
    if (lines.length) say(lines.map(line => `${this.prefix}${line}\n`).join(''))
  }

  end() {
    if (this.begun) this.print('\n')
  }
}

const unknown = new Run('node')

function say(text) {
  let rest = Buffer.from(text)
  while (rest.length) rest = rest.subarray(fs.writeSync(1, rest))
}

for (const name of ['stdout', 'stderr']) {
  const stream = new Writable({
    write(chunk, encoding, done) {
      ;(current.getStore() || unknown).print(chunk.toString())
      done()
    }
  })
  Object.defineProperty(process, name, { value: stream, configurable: true, enumerable: true })
}

process.exit = code => {
  throw new Exited(String(code === undefined ? process.exitCode || 0 : code))
}

// An error that nothing awaits fails the run whose code raised it, and no other.
for (const event of ['uncaughtException', 'unhandledRejection']) {
  process.on(event, error => {
    const run = current.getStore() || unknown
    if (run.fail) run.fail(error)
    else run.print(`${(error && error.stack) || error}\n`)
  })
}

class Context {
  constructor(answer) {
    this.statusCode = 200
    this.headerValues = {}
    this.cbCalled = 0
    this.cb = answer
  }

  status(code) {
    if (!code) return this.statusCode
    this.statusCode = code
    return this
  }

  headers(values) {
    if (!values) return this.headerValues
    this.headerValues = values
    return this
  }

  succeed(value) {
    this.cbCalled++
    this.cb(undefined, value)
  }

  fail(value) {
    if (this.statusCode === 200) this.statusCode = 500
    this.cbCalled++
    this.cb(value)
  }
}

function ofJson(text) {
  try {
    return text ? JSON.parse(text) : {}
  } catch {
    return text // clients, chiron among them, call any text JSON
  }
}

// The body as the middleware of the template leaves it, which goes by the content type.
function parsed(type, body) {
  if (process.env.RAW_BODY === 'true') return body
  const kind = type.split(';')[0].trim().toLowerCase()
  if (kind === 'application/json') return ofJson(body.toString())
  if (kind === 'application/x-www-form-urlencoded') return { ...querystring.parse(body.toString()) }
  return kind.startsWith('text/') ? body.toString() : body
}

function eventOf(asked, body) {
  const [path, query] = asked.target.split(/\?(.*)/s)
  return {
    body: parsed(asked.headers['content-type'], body),
    headers: asked.headers,
    method: asked.method,
    query: { ...querystring.parse(query) },
    path
  }
}

// What express sends of a value: its bytes, and a content type if it chooses one.
function sent(value) {
  if (value === undefined || value === null) return [Buffer.alloc(0), '']
  if (typeof value === 'string') return [Buffer.from(value), '']
  if (Buffer.isBuffer(value)) return [value, 'application/octet-stream']
  if (typeof value === 'object' || typeof value === 'boolean') {
    return [Buffer.from(JSON.stringify(value)), 'application/json']
  }
  throw new TypeError(`a handler cannot answer a ${typeof value}: answer a string or an object`)
}

function answered(context, error, value) {
  if (error) {
    if (error instanceof Error) throw error
    const text = error.toString ? error.toString() : String(error)
    return [{ status: context.statusCode, headers: [], type: '' }, Buffer.from(text)]
  }
  const [body, type] = sent(value)
  const headers = Object.entries(context.headerValues).flatMap(([name, each]) =>
    [each].flat().map(one => [name, String(one)])
  )
  return [{ status: context.statusCode, headers, type }, body]
}

// What a handler answers. `style` says what its template does with what it returns.
function called(style, handle, asked, body, run) {
  return new Promise((resolve, reject) => {
    run.fail = reject
    const answer = (error, value) => {
      try {
        resolve(answered(context, error, value))
      } catch (fault) {
        reject(fault)
      }
    }
    const context = new Context(answer)
    if (style === 'node-classic') {
      const returned = handle(body.toString(), answer)
      if (returned instanceof Promise) returned.then(value => answer(undefined, value), reject)
      return
    }
    const returned = handle(eventOf(asked, body), context, answer)
    const isPromise = !!returned && typeof returned.then === 'function'
    if (!isPromise && (style === 'node-callback' || handle.length > 2)) return
    Promise.resolve(returned).then(value => {
      if (!context.cbCalled) context.succeed(value)
    }, reject)
  })
}

function mark(task, place) {
  // A tracer of this thread sees where a run begins and ends.
  if (task !== undefined) fs.existsSync(`/chiron/${place}/${task}`)
}

async function perform(asked, body) {
  const run = new Run(asked.name, asked.execution)
  return current.run(run, async () => {
    mark(asked.task, 'begin')
    try {
      return await called(asked.style, handlers.get(asked.name), asked, body, run)
    } finally {
      mark(asked.task, 'end')
      run.end()
    }
  })
}

function load(name, file) {
  const run = new Run(name)
  current.run(run, () => {
    try {
      const handle = require(file)
      if (typeof handle !== 'function') throw new TypeError(`${file} exports no function`)
      handlers.set(name, handle)
    } finally {
      run.end()
    }
  })
  return [{}, Buffer.alloc(0)]
}

function failed(error) {
  if (error instanceof Exited) return { exited: error.message }
  const plain = !(error instanceof Error)
  const message = String(plain ? error : error.message)
  return { error: plain ? 'Error' : error.name, message, stack: String((error && error.stack) || '') }
}

async function serve(asked, body) {
  try {
    return asked.load ? load(asked.name, asked.load) : await perform(asked, body)
  } catch (error) {
    return [failed(error), Buffer.alloc(0)]
  }
}

function connected(socket) {
  let known = false
  let pieces = []
  let size = 0
  let wanted = TOKEN.length
  let then = token => {
    known = token.toString() === TOKEN
    return known ? next(HEAD, head) : socket.destroy()
  }

  function next(length, take) {
    wanted = length
    then = take
  }

  function head(bytes) {
    const length = bytes.readUInt32BE(0)
    const bodyLength = Number(bytes.readBigUInt64BE(4))
    next(length, text => {
      const asked = JSON.parse(text.toString())
      next(bodyLength, async body => {
        next(HEAD, head)
        const [told, answer] = await serve(asked, body)
        const said = Buffer.from(JSON.stringify(told))
        const lengths = Buffer.alloc(HEAD)
        lengths.writeUInt32BE(said.length, 0)
        lengths.writeBigUInt64BE(BigInt(answer.length), 4)
        socket.write(Buffer.concat(answer.length < 1 << 16 ? [lengths, said, answer] : [lengths, said]))
        if (answer.length >= 1 << 16) socket.write(answer)
      })
    })
  }

  socket.on('error', () => {})
  socket.on('data', chunk => {
    pieces.push(chunk)
    size += chunk.length
    while (size >= wanted && !socket.destroyed) {
      const whole = pieces.length === 1 ? pieces[0] : Buffer.concat(pieces)
      const taken = whole.subarray(0, wanted)
      pieces = size > wanted ? [whole.subarray(wanted)] : []
      size -= wanted
      then(taken)
    }
  })
}

net.createServer(connected).listen({ fd: Number(process.argv[2]) })

// Whoever started it has ended.
fs.read(0, Buffer.alloc(1), 0, 1, null, () => process.reallyExit(0))
