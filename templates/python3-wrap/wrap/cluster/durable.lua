-- Performs the orders of a replica in one atomic step, and once, however often they are sent.
--
-- KEYS[1] is the prefix of all keys. ARGV has the replica, the number of its message, "1" if it may
-- join, the ms after which it counts as dead, and orders. An order has the number of its words, its
-- name, and its other words. The result has one answer for each order. It is false if other
-- replicas have taken this replica for dead and own its sessions.

local prefix, me, turn, joins, alive_ms = KEYS[1], ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4]
local replicas, evaluator, held = prefix .. 'replicas', prefix .. 'evaluator', prefix .. 'held'
local arrived, offered, free = prefix .. 'arrived', prefix .. 'offered', prefix .. 'sessions:'
local own, done = free .. me, prefix .. 'done:' .. me
-- How many owners of a session have died; sessions that may be the cause; and dead letters.
local deaths, suspects, dead = prefix .. 'deaths', prefix .. 'suspects', prefix .. 'dead'
local SUSPECT, DEADLY = 2, 3
-- Bytes of an object beside its content. The maximum of dead letters in one answer, of objects for
-- each dead letter, and of bytes for each object.
local OBJECT_BYTES, SHOWN, SHOWN_OBJECTS, SHOWN_BYTES = 500, 100, 10, 1000
-- The maximum of words in one Redis call, and of objects in one read.
local AT_ONCE, OBJECTS = 4000, 500
-- How long the last message of a replica is remembered, in ms.
local REMEMBERED_MS = 24 * 3600 * 1000

local function now_ms()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

local function wake(whom)
  redis.call('XADD', prefix .. 'wake:' .. whom, 'MAXLEN', '1', '*', 'for', whom)
end

local function several(verb, key, first, last)
  for at = first, last, AT_ONCE do
    redis.call(verb, key, unpack(ARGV, at, math.min(last, at + AT_ONCE - 1)))
  end
end

-- A session has a line with its size in memory, then the request or the keys of its objects.
local function size_of(session)
  return tonumber(string.match(session, '^%d+'))
end

local function keys_of(session)
  return cjson.decode(string.sub(session, string.find(session, '\n', 1, true) + 1))
end

local function is_window(name)
  return string.find(name, '.', 1, true)
end

-- Offers all sessions of a replica that has ended. Sessions with too many dead owners become dead
-- letters. HKEYS comes first, so that the sessions are not in memory all at once.
local function let_go(replica, has_died)
  for _, name in ipairs(redis.call('HKEYS', free .. replica)) do
    local session, died = redis.call('HGET', free .. replica, name), 0
    if has_died then
      died = redis.call('HINCRBY', deaths, name, 1)
    end
    if died >= DEADLY then
      redis.call('HSET', dead, name, session)
    else
      redis.call('HSET', free, name, session)
      redis.call('RPUSH', died >= SUSPECT and suspects or offered, name)
    end
  end
  redis.call('DEL', free .. replica)
  redis.call('ZREM', replicas, replica)
  wake('all')
end

local function is_evaluator(term)
  return redis.call('GET', evaluator) == term
end

-- The effect of each order, which happens once. ARGV has its words from `first` to `last`.
local orders = {}

function orders.take(first)
  redis.call('HSET', own, ARGV[first], ARGV[first + 1])
  return 1
end

-- Replaces a session by its outputs. Returns 0 if another replica owns it by now, and 2 if the
-- sender is the evaluator, which has the objects already.
function orders.settle(first, last)
  local objects_end = first + 2 + 2 * tonumber(ARGV[first + 2])
  if redis.call('HDEL', own, ARGV[first + 1]) == 0 then
    return 0
  end
  redis.call('HDEL', deaths, ARGV[first + 1])
  several('HSET', held, first + 3, objects_end)
  several('HDEL', held, objects_end + 1, last)
  if is_evaluator(ARGV[first]) then
    return 2
  end
  if objects_end > first + 2 then
    if redis.call('EXISTS', arrived) == 0 then
      wake('evaluator')
    end
    for at = first + 3, objects_end, 2 do
      redis.call('RPUSH', arrived, ARGV[at])
    end
  end
  return 1
end

-- Stores a session of a fired window, for the evaluator ("1") or any replica. Evaluator only.
function orders.fire(first)
  local session, objects = ARGV[first + 1], ARGV[first + 2]
  if not is_evaluator(ARGV[first]) then
    return 0
  end
  if ARGV[first + 3] == '1' then
    redis.call('HSET', own, session, objects)
  else
    redis.call('HSET', free, session, objects)
    redis.call('RPUSH', offered, session)
    wake('all')
  end
  return 1
end

-- Claims offered sessions up to a number and a size; returns their names. A session above the quota
-- of a replica becomes a dead letter. Claims one suspect if the replica has none ("1").
function orders.claim(first)
  local names, left, most = {}, tonumber(ARGV[first + 1]), tonumber(ARGV[first + 2])
  local function take(list)
    local name = redis.call('LINDEX', list, 0)
    if not name then
      return false
    end
    local session = redis.call('HGET', free, name)
    local size = size_of(session)
    if size <= most and size > left then
      return false
    end
    redis.call('LPOP', list)
    redis.call('HDEL', free, name)
    if size > most then
      redis.call('HSET', dead, name, session)
    else
      left = left - size
      redis.call('HSET', own, name, session)
      names[#names + 1] = name
    end
    return true
  end
  if ARGV[first + 3] == '1' then
    take(suspects)
  end
  while #names < tonumber(ARGV[first]) and take(offered) do end
  return names
end

-- Offers ("retry") or drops ("discard") dead letters, all or by name.
function orders.letters(first, last)
  local verb, names = ARGV[first], {unpack(ARGV, first + 1, last)}
  if verb == 'show' then
    return 1
  end
  for _, name in ipairs(#names > 0 and names or redis.call('HKEYS', dead)) do
    local session = redis.call('HGET', dead, name)
    if session then
      redis.call('HDEL', dead, name)
      redis.call('HDEL', deaths, name)
      if verb == 'retry' then
        redis.call('HSET', free, name, session)
        redis.call('RPUSH', offered, name)
      elseif is_window(name) then
        for _, key in ipairs(keys_of(session)) do
          redis.call('HDEL', held, key)
        end
      end
    end
  end
  wake('all')
  return 1
end

-- Removes a number of objects that the evaluator has read.
function orders.read(first)
  if not is_evaluator(ARGV[first]) then
    return 0
  end
  redis.call('LTRIM', arrived, ARGV[first + 1], -1)
  return 1
end

-- Records that the replica is alive, and removes dead replicas. It becomes the evaluator if none is
-- there and it may ("1"); returns its unique term then.
function orders.beat(first)
  local now = now_ms()
  redis.call('ZADD', replicas, now + alive_ms, me)
  for _, gone in ipairs(redis.call('ZRANGEBYSCORE', replicas, '-inf', '(' .. now)) do
    let_go(gone, true)
  end
  local term = redis.call('GET', evaluator)
  if term and term == ARGV[first] then
    redis.call('SET', prefix .. 'size', ARGV[first + 2])
    return ''
  end
  local whose = term and string.match(term, '^%d+')
  local is_taken = whose and whose ~= me and redis.call('ZSCORE', replicas, whose)
  if is_taken or ARGV[first + 1] ~= '1' then
    return ''
  end
  term = me .. '.' .. redis.call('INCR', prefix .. 'terms')
  redis.call('SET', evaluator, term)
  wake('all')
  return term
end

-- Ends the sender's term as the evaluator; another replica may follow at once.
function orders.resign(first)
  if is_evaluator(ARGV[first]) then
    redis.call('DEL', evaluator)
    wake('all')
  end
  return 1
end

-- The last order of a replica.
function orders.leave()
  let_go(me)
  redis.call('DEL', done)
  return 1
end

-- The answer of each order, read after its effect.
local answers = {}

local function objects_of(keys, last)
  local objects = {}
  for at = 1, last, AT_ONCE do
    local found = redis.call('HMGET', held, unpack(keys, at, math.min(last, at + AT_ONCE - 1)))
    for _, each in ipairs(found) do
      objects[#objects + 1] = each
    end
  end
  return objects
end

-- For each claimed session: its name, its record, its objects, and how many of its owners died.
function answers.claim(names)
  local found = {}
  for _, name in ipairs(names) do
    local session, objects = redis.call('HGET', own, name), {}
    if session and is_window(name) then
      local keys = keys_of(session)
      objects = objects_of(keys, #keys)
    end
    if session then
      found[#found + 1] = {name, session, objects, redis.call('HGET', deaths, name) or '0'}
    end
  end
  return found
end

-- For each dead letter: its name, how many replicas it has killed, its bytes, and the beginnings of
-- its objects.
function answers.letters(_)
  local found = {}
  for at, name in ipairs(redis.call('HKEYS', dead)) do
    local session, begins = redis.call('HGET', dead, name), {}
    if at <= SHOWN then
      if is_window(name) then
        local keys = keys_of(session)
        begins = objects_of(keys, math.min(#keys, SHOWN_OBJECTS))
      else
        begins = {string.sub(session, string.find(session, '\n', 1, true) + 1)}
      end
    end
    for number, each in ipairs(begins) do
      begins[number] = string.sub(each or '', 1, SHOWN_BYTES)
    end
    local died = redis.call('HGET', deaths, name) or '0'
    found[#found + 1] = {name, died, tostring(size_of(session)), begins}
  end
  return found
end

-- The next objects for the evaluator, up to a size, but at least one.
function answers.read(is_done, first)
  local keys = is_done == 1 and redis.call('LRANGE', arrived, 0, OBJECTS - 1) or {}
  local left, last = tonumber(ARGV[first + 2]), 0
  while last < #keys and (last == 0 or left > 0) do
    last = last + 1
    left = left - OBJECT_BYTES - redis.call('HSTRLEN', held, keys[last])
  end
  return objects_of(keys, last)
end

-- The sender's new term, or ""; whether its old term is over; the number of replicas; the bytes of
-- the evaluator; the numbers of offered sessions, of objects to read, and of dead letters. In a new
-- term, the evaluator reads all objects in buckets that have not fired.
function answers.beat(term, first)
  local current = redis.call('GET', evaluator)
  if term ~= '' and term == current then
    local fired, places = {}, {dead, free}
    for _, replica in ipairs(redis.call('ZRANGE', replicas, 0, -1)) do
      places[#places + 1] = free .. replica
    end
    for _, place in ipairs(places) do
      for _, name in ipairs(redis.call('HKEYS', place)) do
        if is_window(name) then
          for _, key in ipairs(keys_of(redis.call('HGET', place, name))) do
            fired[key] = true
          end
        end
      end
    end
    redis.call('DEL', arrived)
    for _, key in ipairs(redis.call('HKEYS', held)) do
      if not fired[key] then
        redis.call('RPUSH', arrived, key)
      end
    end
    redis.call('SORT', arrived, 'ALPHA', 'STORE', arrived)
  else
    term = ''
  end
  return {
    term, current == ARGV[first] and 0 or 1, redis.call('ZCARD', replicas),
    tonumber(redis.call('GET', prefix .. 'size') or 0),
    redis.call('LLEN', offered) + redis.call('LLEN', suspects), redis.call('LLEN', arrived),
    redis.call('HLEN', dead)
  }
end

local last = redis.call('GET', done)
local outcomes = {}
if last then
  local number, found = unpack(cmsgpack.unpack(last))
  if number > turn then
    return redis.error_reply('it was sent before what has been done')
  end
  outcomes = number == turn and found or outcomes
end
local is_done = #outcomes > 0
if not is_done then
  if joins == '1' then
    redis.call('ZADD', replicas, now_ms() + alive_ms, me)
  elseif not redis.call('ZSCORE', replicas, me) then
    return false
  end
end
local found, at = {}, 5
while at <= #ARGV do
  local name, first, next_at = ARGV[at + 1], at + 2, at + 1 + tonumber(ARGV[at])
  local number = #found + 1
  if not is_done then
    outcomes[number] = orders[name](first, next_at - 1)
  end
  local answer = answers[name]
  found[number] = answer and answer(outcomes[number], first) or outcomes[number]
  at = next_at
end
if not is_done and redis.call('ZSCORE', replicas, me) then
  redis.call('SET', done, cmsgpack.pack({turn, outcomes}), 'PX', REMEMBERED_MS)
end
return found
