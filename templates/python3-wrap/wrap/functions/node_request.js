// The event of a call: what the templates make of a request by Express and body-parser.
'use strict'

const querystring = require('querystring')
const zlib = require('zlib')

// Bytes of a body, and parameters of a query or a form, if no variable says more.
const LIMIT = '100kb'
const PARAMETERS = 1000
const UNITS = { b: 0, kb: 10, mb: 20, gb: 30 }
const INFLATE = { gzip: zlib.gunzipSync, deflate: zlib.inflateSync }
const TYPE = /^[^/\s]+\/[^/\s]+$/
// As the template, it looks when it starts.
const RAW = process.env.RAW_BODY === 'true'
const FORM = 'application/x-www-form-urlencoded'

// A request that never gets to the handler: the template answers this status.
class Refused extends Error {
  constructor(status, name, message) {
    super(message)
    this.status = status
    this.name = name
  }
}

const limits = new Map()

function bytesOf(variable) {
  if (!limits.has(variable)) limits.set(variable, readBytes(variable))
  return limits.get(variable)
}

function readBytes(variable) {
  const said = (variable && process.env[variable]) || LIMIT
  const [, count, unit] = /^ *([\d.]+) *(b|kb|mb|gb)? *$/i.exec(said) || []
  if (!count) throw new TypeError(`${variable} is ${said}: say bytes, or such as 100kb, 5mb`)
  return Math.floor(count * 2 ** UNITS[(unit || 'b').toLowerCase()])
}

function plain(headers, body, variable, express5) {
  const most = bytesOf(variable)
  const coding = (headers['content-encoding'] || 'identity').toLowerCase()
  const inflate = coding === 'br' && express5 ? zlib.brotliDecompressSync : INFLATE[coding]
  if (coding !== 'identity' && !inflate) {
    throw new Refused(415, 'UnsupportedMediaTypeError', `unsupported content encoding "${coding}"`)
  }
  const said = variable ? `${variable} allows` : 'its template takes'
  const message = `request entity too large: ${said} ${most} bytes`
  if (!inflate) {
    if (body.length > most) throw new Refused(413, 'PayloadTooLargeError', message)
    return body
  }
  try {
    return inflate(body, { maxOutputLength: most })
  } catch (error) {
    if (error.code === 'ERR_BUFFER_TOO_LARGE') throw new Refused(413, 'PayloadTooLargeError', message)
    throw new Refused(400, error.name, error.message)
  }
}

function decoded(body, charset) {
  if (charset === 'utf-8') {
    const text = body.toString()
    return text.startsWith('\ufeff') ? text.slice(1) : text
  }
  if (charset === 'iso-8859-1' || charset === 'latin1') return body.toString('latin1')
  try {
    return new TextDecoder(charset).decode(body)
  } catch {
    throw new Refused(415, 'UnsupportedMediaTypeError', `unsupported charset "${charset.toUpperCase()}"`)
  }
}

function json(text) {
  if (!text) return {}
  const [, first] = /^[ \t\n\r]*([^ \t\n\r])/.exec(text) || []
  try {
    if (first && first !== '{' && first !== '[') {
      throw new SyntaxError(`a body of JSON begins with { or [, not with ${first}`)
    }
    return JSON.parse(text)
  } catch (error) {
    throw new Refused(400, 'SyntaxError', error.message)
  }
}

function form(text, unescape) {
  const count = text.split('&').length
  if (count > PARAMETERS) throw new Refused(413, 'PayloadTooLargeError', `more than ${PARAMETERS} parameters`)
  return nested(text, 32, Math.max(100, count), unescape)
}

// What a body is to its handler, by its content type.
function parsed(style, headers, body) {
  const express5 = style === 'node22'
  const [kind, ...parameters] = headers['content-type'].split(';').map(each => each.trim())
  const type = kind.toLowerCase()
  const whole = variable => plain(headers, body, variable, express5)
  const older = style === 'node-callback'
  if (headers['content-length'] === undefined && !headers['transfer-encoding']) return express5 ? undefined : {}
  if (!older && RAW && TYPE.test(type)) return whole('MAX_RAW_SIZE')
  if (older && type === 'application/octet-stream') return whole()
  const named = parameters.map(each => /^charset *= *"?([^"]*)"?$/i.exec(each)).find(Boolean)
  const charset = named ? named[1].toLowerCase() : 'utf-8'
  if (/^text\/[^/\s]+$/.test(type)) return decoded(whole(), charset)
  const isForm = type === FORM && !older
  if (type !== 'application/json' && !isForm) return express5 ? undefined : {}
  if (isForm ? charset !== 'utf-8' && !(express5 && charset === 'iso-8859-1') : !charset.startsWith('utf-')) {
    throw new Refused(415, 'UnsupportedMediaTypeError', `unsupported charset "${charset.toUpperCase()}"`)
  }
  const text = decoded(whole(isForm || older ? undefined : 'MAX_JSON_SIZE'), charset)
  return isForm ? form(text, charset === 'utf-8' ? unescaped : unescape) : json(text)
}

function unescaped(text) {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

function isObject(value) {
  return typeof value === 'object' && value !== null
}

function merged(target, source) {
  if (!source) return target
  if (!isObject(target)) return [target].concat(source)
  if (!isObject(source)) {
    if (!Array.isArray(target)) return [target, source]
    target.push(source)
    return target
  }
  const both = Array.isArray(target) && Array.isArray(source)
  const into = Array.isArray(target) && !both ? { ...target } : target
  for (const [key, value] of Object.entries(source)) {
    if (!Object.hasOwn(into, key)) into[key] = value
    else if (!both || (isObject(into[key]) && isObject(value))) into[key] = merged(into[key], value)
    else into.push(value)
  }
  return into
}

function dense(value) {
  if (Array.isArray(value)) return value.filter(() => true).map(dense)
  if (isObject(value)) for (const key of Object.keys(value)) value[key] = dense(value[key])
  return value
}

// `a[b][]=1` as { a: { b: ['1'] } }, to this depth and with arrays of up to `longest`.
function nested(text, depth, longest, decodeURIComponent = unescaped) {
  const found = {}
  if (!text) return found
  const flat = querystring.parse(text, '&', '=', { maxKeys: PARAMETERS, decodeURIComponent })
  for (const [name, value] of Object.entries(flat)) {
    const parts = name.match(/\[[^[\]]*\]/g) || []
    const begin = parts.length ? name.indexOf(parts[0]) : name.length
    const keys = [...(begin ? [name.slice(0, begin)] : []), ...parts.slice(0, depth)]
    if (parts.length > depth) keys.push(`[${parts.slice(depth).join('')}]`)
    if (!keys.length || keys.includes('__proto__')) continue
    const one = keys.reduceRight((inner, key) => {
      if (key === '[]') return [].concat(inner)
      const bare = /^\[.*\]$/s.test(key) ? key.slice(1, -1) : key
      if (bare === '__proto__') return {}
      const index = Number.parseInt(bare, 10)
      const isIndex = bare !== key && String(index) === bare && index >= 0 && index < longest
      return Object.assign(isIndex ? [] : {}, { [bare]: inner })
    }, value)
    for (const [key, each] of Object.entries(one)) {
      found[key] = Object.hasOwn(found, key) ? merged(found[key], each) : each
    }
  }
  return dense(found)
}

// An object of a class, which is sent as JSON where a handler returns it.
class FunctionEvent {}

function eventOf(style, asked, body) {
  const [path, query = ''] = asked.target.split(/\?(.*)/s)
  return Object.assign(new FunctionEvent(), {
    body: parsed(style, asked.headers, body),
    headers: asked.headers,
    method: asked.method,
    query: style === 'node22' ? querystring.parse(query) : nested(query, 5, 1000),
    path
  })
}

module.exports = { Refused, eventOf }
