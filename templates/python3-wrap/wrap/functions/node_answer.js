// What a handler answers: its status, headers, type and bytes, as the templates' Express sends them.
'use strict'

const http = require('http')

const EMPTY = Buffer.alloc(0)

function isPlain(value) {
  return !!value && (value.constructor === Array || value.constructor === Object)
}

// The bytes of a value, and the content type if `type` says none.
function sent(value, type, express5) {
  if (isPlain(value) || typeof value === 'string') {
    const text = typeof value === 'string' ? value : JSON.stringify(value)
    const kind = (type || 'text/html').replace(/; *charset=[^;]*/i, '')
    return [Buffer.from(text), `${kind}; charset=utf-8`]
  }
  if (value === undefined || value === null) return [EMPTY, type]
  if (Buffer.isBuffer(value)) return [value, type || 'application/octet-stream']
  if (express5 && ArrayBuffer.isView(value)) {
    return [Buffer.from(value.buffer, value.byteOffset, value.byteLength), type || 'application/octet-stream']
  }
  if (['object', 'boolean', 'number'].includes(typeof value)) {
    return sent(JSON.stringify(value) || '', type || 'application/json', express5)
  }
  throw new TypeError(`a handler cannot answer a ${typeof value}: answer a string or an object`)
}

function headersOf(values) {
  const pairs = Object.entries(values).flatMap(([name, each]) => [each].flat().map(one => [name, String(one)]))
  for (const [name, value] of pairs) {
    http.validateHeaderName(name)
    http.validateHeaderValue(name, value)
  }
  const isType = ([name]) => name.toLowerCase() === 'content-type'
  const [, type = ''] = pairs.find(isType) || []
  const isText = /^(text\/|application\/(javascript|json))/.test(type) && !/charset/i.test(type)
  return [pairs.filter(pair => !isType(pair)), isText ? `${type}; charset=utf-8` : type]
}

function checked(status, express5) {
  const code = express5 ? status : status | 0
  if (Number.isInteger(code) && code >= 200 && code <= 999) return code
  throw new RangeError(`a handler cannot answer the status ${status}: answer 200 to 999`)
}

// The answer of a handler that succeeded with `value`.
function succeeded(style, context, value) {
  const express5 = style === 'node22'
  const [headers, type] = headersOf(context.headerValues)
  if (typeof value === 'number' && !express5) {  // to Express 4 it is the status
    const status = checked(value, express5)
    const [body, kind] = sent(http.STATUS_CODES[value], type || 'text/plain', express5)
    return [{ status, headers, type: kind }, body]
  }
  const status = checked(context.statusCode, express5)
  const [body, kind] = sent(value, type, express5)
  if (status === 204 || status === 304) return [{ status, headers, type: '' }, EMPTY]
  return [{ status, headers, type: kind }, status === 205 ? EMPTY : body]
}

module.exports = { EMPTY, succeeded }
