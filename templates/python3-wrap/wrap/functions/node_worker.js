// Runs the Node.js handlers of one process of a wrap, all on one event loop.
//
// It listens on the first descriptor that it is given, and ends with the process that has the other end of the second.
// A connection begins with the token, and has one call at a time: JSON, then a body, each after its length. What handlers
// print goes out in lines with their names.
'use strict'

const { AsyncLocalStorage, AsyncResource } = require('async_hooks')
const fs = require('fs')
const Module = require('module')
const net = require('net')
const path = require('path')
const { Writable } = require('stream')
const { StringDecoder } = require('string_decoder')
const { format } = require('util')
const { EMPTY, succeeded } = require('./node_answer')
const { Refused, eventOf } = require('./node_request')
const state = require('./node_state')

const HEAD = 12
// Bytes of an answer that are copied to be written at once.
const SMALL = 1 << 16
// Handlers do not see these.
const [LISTENER, LIFELINE] = process.argv.splice(2).map(Number)
const TOKEN = process.env.CHIRON_NODE_TOKEN
delete process.env.CHIRON_NODE_TOKEN
// A line of the log that is longer is broken.
const LONGEST_LINE = 1 << 15
const PAUSE = new Int32Array(new SharedArrayBuffer(4))

// What the code that runs belongs to: a run, or the import of a handler.
const current = new AsyncLocalStorage()
// Handlers by name, each with its folder and with the context of its import, in which its runs begin.
const handlers = new Map()
const { cwd } = process
const STARTED_IN = cwd()

class Exited extends Error {}
Exited.prototype.name = 'process.exit'

class Run {
  constructor(name, folder, execution = '') {
    this.folder = folder
    this.prefix = `[${execution ? `${name} ${execution}` : name}] `
    this.begun = ''
    this.decoder = new StringDecoder()
    this.fail = null
    this.exited = null
  }

  print(text) {
    const lines = (this.begun + this.decoder.write(text)).split('\n')
    this.begun = lines.pop()
    while (this.begun.length > LONGEST_LINE) {
      lines.push(this.begun.slice(0, LONGEST_LINE))
      this.begun = this.begun.slice(LONGEST_LINE)
    }
    if (lines.length) say(lines.map(line => `${this.prefix}${line}\n`).join(''))
  }

  tell(error) {
    if (error !== this.exited) this.print(`${shown(error)}\n`)
  }

  end() {
    this.begun += this.decoder.end()
    if (this.begun) this.print('\n')
  }
}

const unknown = new Run('node', STARTED_IN)

// What the templates print of an error: its stack, its cause and its other properties.
function shown(error) {
  try {
    return format(error)
  } catch {
    return String(error && error.stack)
  }
}

// A missing reader of the log is no error.
function say(text) {
  let rest = Buffer.from(text)
  while (rest.length) {
    try {
      rest = rest.subarray(fs.writeSync(1, rest))
    } catch (error) {
      if (error.code !== 'EAGAIN') return
      Atomics.wait(PAUSE, 0, 0, 1)  // a function has made the pipe non-blocking, and it is full
    }
  }
}

for (const [name, fd] of [['stdout', 1], ['stderr', 2]]) {
  const stream = new Writable({
    write(chunk, encoding, done) {
      ;(current.getStore() || unknown).print(chunk)
      done()
    },
    destroy(error, done) {  // it serves on, as Node's own
      done(error)
      this._undestroy()
    }
  })
  stream.end = (...given) => {  // the other functions of the process print on
    const [piece] = given
    const isPiece = typeof piece !== 'function' && piece !== undefined && piece !== null
    stream.write(...(isPiece ? given : ['', given.find(each => typeof each === 'function')]))
    return stream
  }
  stream.fd = fd  // for programs that get the stream, and for what writes to it at once
  Object.defineProperty(process, name, { value: stream, configurable: true, enumerable: true })
}

// Each function finds its folder, as alone, in the working directory.
process.cwd = () => {
  const directory = cwd()
  return directory === STARTED_IN ? (current.getStore() || unknown).folder : directory
}

process.exit = code => {
  const exited = new Exited(String(code === undefined ? process.exitCode || 0 : code))
  const run = current.getStore() || unknown
  if (run.fail) run.fail(exited)
  else run.tell(exited)
  run.exited = exited  // which the run cannot catch
  throw exited
}

// An error that nothing awaits fails the run whose code raised it, and no other, unless handlers listen themselves.
process.on('uncaughtException', error => {
  const run = current.getStore() || unknown
  if (process.listenerCount('uncaughtException') > 1) return
  if (run.fail) run.fail(error)
  else run.tell(error)
})

class FunctionContext {
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
    if (this.statusCode == 200) this.statusCode = 500
    this.cbCalled++
    this.cb(value)
  }
}

// The error of a handler, which is an answer as well if the status that it set is one of errors.
function failed(error, context) {
  if (error instanceof Exited) return [{ exited: error.message }, EMPTY]
  const plain = !(error instanceof Error)
  const message = String(plain ? error : error.message)
  const stack = String((error && error.stack) || '')
  const told = { error: plain ? 'Error' : error.name, message, stack, shown: shown(error) }
  if (!context || context.statusCode < 400) return [told, EMPTY]
  const answer = { status: context.statusCode, headers: [], type: 'text/html; charset=utf-8', shown: told.shown }
  return [plain ? answer : { ...told, ...answer }, Buffer.from(String(error))]
}

// What a handler answers. `style` says what its template does with what it returns.
function called(style, handle, asked, body, run) {
  return new Promise(done => {
    let ended = false
    const resolve = told => {
      ended = true
      done(told)
    }
    // What fails after the answer is in the log.
    const fail = error => (ended ? run.tell(error) : resolve(failed(error, context)))
    const answer = (error, value) => {
      try {
        resolve(error ? failed(error, context) : succeeded(style, context, value))
      } catch (fault) {
        resolve(failed(fault))
      }
    }
    const context = new FunctionContext(answer)
    run.fail = error => (ended ? run.tell(error) : resolve(failed(error)))
    try {
      if (style === 'node-classic') {
        const returned = handle(body.toString(), answer)
        if (returned instanceof Promise) returned.then(value => answer(undefined, value), fail)
        return
      }
      const returned = handle(eventOf(style, asked, body), context, answer)
      const isPromise = !!returned && typeof returned.then === 'function'
      if (!isPromise && (style === 'node-callback' || handle.length > 2)) return
      Promise.resolve(returned).then(value => {
        if (!context.cbCalled) context.succeed(value)
      }, fail)
    } catch (error) {
      const told = refused(error)
      if (told) resolve(told)
      else fail(error)
    }
  })
}

// What the template answers of a request that it cannot read.
function refused(error) {
  if (!(error instanceof Refused)) return undefined
  const { status, name, message } = error
  return [{ status, headers: [], type: 'text/plain; charset=utf-8' }, Buffer.from(`${name}: ${message}`)]
}

function mark(task, place) {
  // A tracer of this thread sees where a run begins and ends.
  if (task !== undefined) fs.existsSync(`/chiron/${place}/${task}`)
}

async function perform(asked, body) {
  const { handle, folder, context } = handlers.get(asked.name)
  const run = new Run(asked.name, folder, asked.execution)
  const own = context.runInAsyncScope(() => new AsyncResource('run'))  // what the run enters stays in it
  return own.runInAsyncScope(() => current.run(run, async () => {
    mark(asked.task, 'begin')
    try {
      return await called(asked.style, handle, asked, body, run)
    } finally {
      mark(asked.task, 'end')
      run.end()
    }
  }))
}

// The main module to a handler: alone, that of its template, beside the handler's folder.
function template(folder) {
  const file = path.join(folder, 'index.js')
  return Object.assign(new Module(file), { filename: file, paths: Module._nodeModulePaths(folder) })
}

function load(name, file) {
  const bareKib = Math.round(process.memoryUsage.rss() / 1024)
  const folder = path.dirname(path.dirname(file))
  const run = new Run(name, folder)
  const context = new AsyncResource('import')
  context.runInAsyncScope(() => current.run(run, () => {
    const [directory, { mainModule }] = [cwd(), process]
    if (directory === STARTED_IN) process.chdir(folder)
    process.mainModule = template(folder)
    try {
      const handle = process.mainModule.require(file)
      if (run.exited) throw run.exited
      if (typeof handle !== 'function') throw new TypeError(`${file} exports no function`)
      handlers.set(name, { handle, folder, context })
    } finally {
      process.mainModule = mainModule
      if (cwd() === folder) process.chdir(directory)
      run.end()
    }
  }))
  return [{ bare_kib: bareKib }, EMPTY]
}

async function serve(asked, body) {
  try {
    if (asked.state) return [state.changed(), EMPTY]
    return asked.load ? load(asked.name, asked.load) : await perform(asked, body)
  } catch (error) {
    return failed(error)
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
    const bodyLength = bytes.readUInt32BE(4) * 2 ** 32 + bytes.readUInt32BE(8)
    next(length, text => {
      const asked = JSON.parse(text.toString())
      next(bodyLength, async body => {
        next(HEAD, head)
        const [told, answer] = await serve(asked, body)
        const isSmall = answer.length < SMALL
        const text = JSON.stringify(told)
        const length = Buffer.byteLength(text)
        const message = Buffer.allocUnsafe(HEAD + length + (isSmall ? answer.length : 0))
        message.writeUInt32BE(length, 0)
        message.writeUInt32BE(Math.floor(answer.length / 2 ** 32), 4)
        message.writeUInt32BE(answer.length % 2 ** 32, 8)
        message.write(text, HEAD)
        if (isSmall) answer.copy(message, HEAD + length)
        socket.write(message)
        if (!isSmall) socket.write(answer)
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

state.begin()
net.createServer(connected).listen({ fd: LISTENER })

// Whoever started it has ended. A thread that reads would keep the process from ending otherwise.
new net.Socket({ fd: LIFELINE, writable: false }).resume().on('close', () => process.reallyExit(0))
