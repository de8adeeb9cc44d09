// What all handlers of a Node.js process share: what is not as it was at its start, and what was set for a while.
'use strict'

const MODULES = [
  ...['assert', 'buffer', 'child_process', 'crypto', 'dns', 'events', 'fs', 'fs/promises', 'http', 'https', 'module'],
  ...['net', 'os', 'path', 'querystring', 'stream', 'string_decoder', 'timers', 'tls', 'url', 'util', 'zlib']
]
const HOLDERS = { console, process, ...Object.fromEntries(MODULES.map(name => [name, require(name)])) }
const { dns, events, http, https, module: modules, net, stream, util } = HOLDERS
// The globals that are looked into, and the methods of the classes among them.
const GLOBALS = Object.entries(Object.getOwnPropertyDescriptors(globalThis)).map(([name, { value }]) => [name, value])
  .filter(([name, value]) => typeof value === 'function' || ['Intl', 'JSON', 'Math', 'Reflect'].includes(name))
  .flatMap(([name, value]) => [[name, value], ...(value.prototype ? [[`${name}.prototype`, value.prototype]] : [])])
// The methods of the modules' classes.
const CLASSES = []
for (const [name, holder] of Object.entries({ ...HOLDERS, Intl })) {
  for (const key of Object.getOwnPropertyNames(holder)) {
    const { value: made } = Object.getOwnPropertyDescriptor(holder, key)
    const isClass = typeof made === 'function' && made.prototype && Reflect.ownKeys(made.prototype).length > 1
    if (isClass) CLASSES.push([`${name}.${key}.prototype`, made.prototype])
  }
}
// Node sets these itself, or a watched object is in their place.
const IGNORED =
  /^process\.(?:chdir|exitCode|stdin|env|stdout|stderr)$|(?<!module)\._|^global\.(?:console|process)$|Agent\.total/
// A property that has a getter is often made when it is first read.
const LAZY = 'getter'
// What fetch makes when it is first called.
const DISPATCHER = Symbol.for('undici.globalDispatcher.1')

const numbers = new WeakMap()
const touched = new Map()
let made = 0
let started

// A text for a value; for an object it says which.
function text(value) {
  if (value === null || (typeof value !== 'object' && typeof value !== 'function')) return `${typeof value} ${String(value)}`
  if (!numbers.has(value)) numbers.set(value, ++made)
  return `object ${numbers.get(value)}`
}

// Whether Node's own class of dispatchers made it: by the place where that refuses an option.
function isOfNode(dispatcher) {
  try {
    return !new dispatcher.constructor({ factory: 0 })
  } catch (error) {
    return /node:internal\/deps\/undici/.test(error.stack)
  }
}

function valuesOf(holder) {
  const found = new Map()
  for (const key of Reflect.ownKeys(holder)) {
    const { value, get } = Object.getOwnPropertyDescriptor(holder, key)
    found.set(key, get ? LAZY : value)
  }
  return found
}

function settings() {
  const found = new Map()
  found.set('process.argv', String(process.argv))
  found.set('dns.setServers', String(dns.getServers()))
  found.set('dns.setDefaultResultOrder', dns.getDefaultResultOrder())
  found.set('net.setDefaultAutoSelectFamily', net.getDefaultAutoSelectFamily())
  found.set('net.setDefaultAutoSelectFamilyAttemptTimeout', net.getDefaultAutoSelectFamilyAttemptTimeout())
  found.set('stream.setDefaultHighWaterMark', stream.getDefaultHighWaterMark(false))
  for (const name of ['captureRejections', 'defaultMaxListeners']) found.set(`events.${name}`, events[name])
  for (const name of ['http', 'https']) found.set(`${name}.globalAgent`, HOLDERS[name].globalAgent)
  for (const [name, value] of Object.entries(process.env)) found.set(`process.env.${name}`, value)
  for (const event of process.eventNames()) found.set(`process.on(${String(event)})`, process.listenerCount(event))
  for (const name of ['cwd', 'umask']) found.set(`process.${name}`, process[name]())
  return found
}

// What has a value now: by the name of what holds it, and its key there.
function now() {
  const holders = [['global', globalThis], ...GLOBALS, ...CLASSES, ...Object.entries(HOLDERS)]
  for (const [name, { globalAgent }] of Object.entries({ http, https })) {
    holders.push([`${name}.globalAgent`, globalAgent], [`${name}.globalAgent.options`, globalAgent.options])
  }
  holders.push(['util.inspect.defaultOptions', util.inspect.defaultOptions])
  holders.push(['require.extensions', modules._extensions])
  return new Map([['', settings()], ...holders.map(([name, holder]) => [name, valuesOf(holder)])])
}

function watched(name, object) {
  const note = how => (holder, key, ...more) => {
    const whole = `${name}.${String(key)}`
    if (!IGNORED.test(whole)) touched.set(whole, (touched.get(whole) || 0) + 1)
    return Reflect[how](holder, key, ...more)
  }
  const set = (holder, key, value) => note('set')(holder, key, value)
  return new Proxy(object, { set, deleteProperty: note('deleteProperty'), defineProperty: note('defineProperty') })
}

exports.begin = () => { started = now() }

// The names of what is not as it was, each with a text that tells its values apart. From the first call on, what is set
// for a while is among them.
exports.changed = () => {
  if (!touched.size) {
    touched.set('', 0)
    globalThis.console = watched('console', console)
    process.env = watched('process.env', process.env)
    for (const name of ['stdout', 'stderr']) {
      const value = watched(`process.${name}`, process[name])
      Object.defineProperty(process, name, { value, configurable: true, enumerable: true })
    }
  }
  const told = {}
  for (const [name, values] of now()) {
    const before = started.get(name)
    for (const key of new Set([...before.keys(), ...values.keys()])) {
      const [was, value] = [before.get(key), values.get(key)]
      const whole = name ? `${name}.${String(key)}` : key
      if (Object.is(was, value) || was === LAZY || IGNORED.test(whole)) continue
      if (key !== DISPATCHER || !isOfNode(value)) told[whole] = values.has(key) ? text(value) : 'gone'
    }
  }
  for (const [name, count] of touched) if (name) told[name] = `set ${count}`
  return told
}
