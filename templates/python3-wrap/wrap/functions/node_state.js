// What all handlers of a Node.js process share: what is not as it was at its start, and what was set for a while.
'use strict'

const MODULES = [
  ...['assert', 'buffer', 'child_process', 'crypto', 'dns', 'events', 'fs', 'fs/promises', 'http', 'https', 'module'],
  ...['net', 'os', 'path', 'querystring', 'stream', 'string_decoder', 'timers', 'tls', 'url', 'util', 'zlib']
]
const HOLDERS = { console, process, ...Object.fromEntries(MODULES.map(name => [name, require(name)])) }
const { dns, events, http, https, module: modules, net, util } = HOLDERS
// The globals that are looked into.
const GLOBALS = Object.entries(Object.getOwnPropertyDescriptors(globalThis)).map(([name, { value }]) => [name, value])
  .filter(([name, value]) => typeof value === 'function' || ['Intl', 'JSON', 'Math', 'Reflect'].includes(name))
// Node sets these itself, or a watched object is in their place.
const IGNORED =
  /^process\.(?:chdir|exitCode|stdin|env|stdout|stderr)$|(?<!module)\._|^global\.(?:console|process)$|Agent\.total/
// A property that has a getter is often made when it is first read.
const LAZY = 'getter'

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

function add(found, name, holder) {
  for (const key of Object.getOwnPropertyNames(holder)) {
    const { value, get } = Object.getOwnPropertyDescriptor(holder, key)
    if (!IGNORED.test(`${name}.${key}`)) found.set(`${name}.${key}`, get ? LAZY : text(value))
  }
}

function now() {
  const found = new Map()
  add(found, 'global', globalThis)
  for (const [name, value] of GLOBALS) {
    add(found, name, value)
    if (value.prototype) add(found, `${name}.prototype`, value.prototype)
  }
  for (const [name, holder] of Object.entries(HOLDERS)) add(found, name, holder)
  const agents = { 'http.globalAgent': http.globalAgent, 'https.globalAgent': https.globalAgent }
  for (const [name, agent] of Object.entries(agents)) {
    found.set(name, text(agent))
    add(found, name, agent)
    add(found, `${name}.options`, agent.options)
  }
  add(found, 'util.inspect.defaultOptions', util.inspect.defaultOptions)
  add(found, 'require.extensions', modules._extensions)
  found.set('process.argv', String(process.argv))
  found.set('dns.setServers', String(dns.getServers()))
  found.set('dns.setDefaultResultOrder', dns.getDefaultResultOrder())
  found.set('net.setDefaultAutoSelectFamily', String(net.getDefaultAutoSelectFamily()))
  found.set('events.defaultMaxListeners', String(events.defaultMaxListeners))
  for (const [name, value] of Object.entries(process.env)) found.set(`process.env.${name}`, value)
  for (const event of process.eventNames()) found.set(`process.on(${String(event)})`, text(process.listenerCount(event)))
  for (const name of ['cwd', 'umask']) found.set(`process.${name}`, String(process[name]()))
  return found
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
  const found = now()
  const differs = name => started.get(name) !== found.get(name) && started.get(name) !== LAZY
  const names = [...new Set([...started.keys(), ...found.keys()])].filter(differs)
  const told = names.map(name => [name, found.get(name) || 'gone'])
  return Object.fromEntries([...told, ...[...touched].filter(([name]) => name).map(([name, count]) => [name, `set ${count}`])])
}
