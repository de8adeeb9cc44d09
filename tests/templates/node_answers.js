// Answers as the request's header x-do says, or tells the event.
'use strict'

const { spawnSync } = require('child_process')

class Own { constructor() { this.a = 1 } }
class OrderError extends Error {
  constructor(message) { super(message); this.name = 'OrderError' }
}
const shown = body => {
  if (Buffer.isBuffer(body)) {
    return body.length > 1000 ? { bytes: body.length } : { buffer: body.toString('latin1') }
  }
  return JSON.stringify(body) && JSON.stringify(body).length > 1000 ? typeof body : body
}
const ways = {
  event: ({ body, headers, ...rest }) => {
    const { host, 'accept-encoding': coding, 'transfer-encoding': pieces, ...own } = headers
    const sorted = Object.fromEntries(Object.entries(own).sort())
    return JSON.stringify({ body: shown(body), is: typeof body, headers: sorted, ...rest })
  },
  'string': () => 'text', 'empty': () => '', 'number': () => 201, 'a small number': () => 7,
  'NaN': () => NaN, 'true': () => true, 'null': () => null, 'undefined': () => undefined,
  'an array': () => [1, { a: 2 }], 'an object': () => ({ a: 'é' }), 'no fields': () => ({}),
  'an instance': () => new Own(), 'a date': () => new Date(0), 'a map': () => new Map([[1, 2]]),
  'no prototype': () => Object.assign(Object.create(null), { a: 1 }),
  'an error': () => new Error('returned'), 'a buffer': () => Buffer.from([0, 255, 1]),
  'bytes': () => new Uint8Array([0, 255, 1]), 'a function': () => () => 1, 'a bigint': () => 5n,
  'a symbol': () => Symbol('x'), 'a circle': () => { const a = {}; a.a = a; return a },
  'the event': event => Object.assign(event, { headers: {} }),
  'its streams': () => {
    const { status } = spawnSync('true', { stdio: ['ignore', process.stdout, process.stderr] })
    return [process.stdout.fd, process.stderr.fd, status]
  },
  'later': () => new Promise(resolve => setTimeout(resolve, 1, 'later')),
  'a thenable': () => ({ then: resolve => resolve('thenable') }),
  'succeed': (event, context) => context.succeed('given'),
  'succeed, return': (event, context) => { context.succeed('first'); return 'second' },
  'headers': (event, context) => context.headers({ 'X-A': 1, 'x-b': ['1', '2'], 'x-n': null }).succeed({ a: 1 }),
  'cookies': (event, context) => context.headers({ 'set-cookie': ['a=1', 'b=2'] }).succeed(''),
  'type of an object': (event, context) => context.headers({ 'Content-Type': 'application/json' }).succeed({ a: 1 }),
  'type of an instance': (event, context) => context.headers({ 'content-type': 'application/json' }).succeed(new Own()),
  'type of a text': (event, context) => context.headers({ 'content-type': 'text/plain' }).succeed('x'),
  'charset': (event, context) => context.headers({ 'content-type': 'text/plain; charset=latin1' }).succeed('é'),
  'type of bytes': (event, context) => context.headers({ 'content-type': 'image/png' }).succeed(Buffer.from('a')),
  'text in bytes': (event, context) => context.headers({ 'content-type': 'text/csv' }).succeed(Buffer.from('a')),
  'no header': (event, context) => context.headers({ 'bad header': '1' }).succeed('x'),
  'lines in a header': (event, context) => context.headers({ 'x-a': 'a\nb' }).succeed('x'),
  'latin header': (event, context) => context.headers({ 'x-a': 'é' }).succeed('x'),
  'status 201': (event, context) => context.status(201).succeed('made'),
  'status 204': (event, context) => context.status(204).succeed('x'),
  'status 205': (event, context) => context.status(205).succeed('x'),
  'status 302': (event, context) => context.status(302).headers({ Location: '/a' }).succeed(''),
  'status 304': (event, context) => context.status(304).succeed('x'),
  'status 404': (event, context) => context.status(404).succeed({ no: 1 }),
  'status 999': (event, context) => context.status(999).succeed('x'),
  'asks its status': (event, context) => String(context.status()),
  'asks its headers': (event, context) => context.headers({ a: '1' }).headers(),
  'fail text': (event, context) => context.fail('no stock'),
  'fail error': (event, context) => context.fail(new OrderError('no stock')),
  'fail object': (event, context) => context.fail({ a: 1 }),
  'fail nothing': (event, context) => context.fail(),
  'fail number': (event, context) => context.fail(5),
  'fail 409': (event, context) => context.status(409).fail('no'),
  'fail 409 error': (event, context) => context.status(409).fail(new Error('no')),
  'fail headers': (event, context) => context.status(409).headers({ 'x-a': '1' }).fail('no'),
  'fail 201': (event, context) => context.status(201).fail('no'),
  'throw': () => { throw new OrderError('no stock') },
  'throw 404': (event, context) => { context.status(404); throw new OrderError('no stock') },
  'throw text': () => { throw 'no stock' }, 'throw object': () => { throw { a: 1 } },
  'reject': () => Promise.reject(),
  'callback': (event, context, callback) => { context.cbCalled++; callback(null, { a: 1 }) },
  'callback text': (event, context, callback) => { context.cbCalled++; callback('no stock') },
  'callback 418': (event, context, callback) => { context.cbCalled++; context.status(418); callback(new Error('tea')) }
}
module.exports = async (event, context, callback) => ways[event.headers['x-do'] || 'event'](event, context, callback)
module.exports.ways = Object.keys(ways).filter(each => each !== 'event')
