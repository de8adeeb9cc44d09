-- Does what a replica asks for, all of it in one step and once, however often it is sent.
--
-- KEYS[1] is what all keys begin with. ARGV has the replica, the number of what it sends, "1" where
-- it may join, for how many ms it is taken to be alive, and orders: how many words follow, the
-- order's name, its other words. The answer has one for each order; none where others have taken
-- the replica for dead, and have what it had.

local prefix, me, turn, joins, alive_ms = KEYS[1], ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4]
local replicas, evaluator, held = prefix .. 'replicas', prefix .. 'evaluator', prefix .. 'held'
local arrived, offered, free = prefix .. 'arrived', prefix .. 'offered', prefix .. 'sessions:'
local own, done = free .. me, prefix .. 'done:' .. me
-- Words that Lua hands on at once, and objects that are read at once.
local AT_ONCE, OBJECTS = 4000, 500
-- How long is remembered what a replica has sent last, in ms.
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

-- Offers all sessions of a replica, which is no more.
local function let_go(replica)
  local found = redis.call('HGETALL', free .. replica)
  for at = 1, #found, 2 do
    redis.call('HSET', free, found[at], found[at + 1])
    redis.call('RPUSH', offered, found[at])
  end
  redis.call('DEL', free .. replica)
  redis.call('ZREM', replicas, replica)
  wake('all')
end

local function is_evaluator(term)
  return redis.call('GET', evaluator) == term
end

-- What is done of each order, which happens once; ARGV has its words from `first` to `last`.
local orders = {}

function orders.take(first)
  redis.call('HSET', own, ARGV[first], ARGV[first + 1])
  return 1
end

-- What came of a session takes its place: 0 where another replica has it by now, 2 where the
-- evaluator itself says it, who needs not be told of the objects.
function orders.settle(first, last)
  local objects_end = first + 2 + 2 * tonumber(ARGV[first + 2])
  if redis.call('HDEL', own, ARGV[first + 1]) == 0 then
    return 0
  end
  several('HSET', held, first + 3, objects_end)
  several('HDEL', held, objects_end + 1, last)
  if is_evaluator(ARGV[first]) then
    return 2
  end
  if objects_end > first + 2 then
    if redis.call('EXISTS', arrived) == 0 then
      wake('evaluator')
    end
    for at = first + 4, objects_end, 2 do
      redis.call('RPUSH', arrived, ARGV[at])
    end
  end
  return 1
end

-- A window has fired, which the evaluator alone can say: for itself ("1") or for any replica.
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

-- Takes up to so many sessions that are offered; their names.
function orders.claim(first)
  local names = {}
  for _ = 1, tonumber(ARGV[first]) do
    local name = redis.call('LPOP', offered)
    if not name then
      break
    end
    local session = redis.call('HGET', free, name)
    redis.call('HDEL', free, name)
    redis.call('HSET', own, name, session)
    names[#names + 1] = name
  end
  return names
end

-- Forgets so many objects that the evaluator has read.
function orders.read(first)
  if not is_evaluator(ARGV[first]) then
    return 0
  end
  redis.call('LTRIM', arrived, ARGV[first + 1], -1)
  return 1
end

-- The replica is alive: looks who is not, and becomes the evaluator where there is none and it
-- wants to ("1"); the term then, of which no two are alike.
function orders.beat(first)
  local now = now_ms()
  redis.call('ZADD', replicas, now + alive_ms, me)
  for _, dead in ipairs(redis.call('ZRANGEBYSCORE', replicas, '-inf', '(' .. now)) do
    let_go(dead)
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

-- Is the evaluator no longer, where it was; another one may be at once.
function orders.resign(first)
  if is_evaluator(ARGV[first]) then
    redis.call('DEL', evaluator)
    wake('all')
  end
  return 1
end

-- The last that a replica says.
function orders.leave()
  let_go(me)
  redis.call('DEL', done)
  return 1
end

-- What is read for an order that has been done.
local answers = {}

-- Of each session that was taken: its name, what it has, and the objects that it names.
function answers.claim(names)
  local found = {}
  for _, name in ipairs(names) do
    local session, objects = redis.call('HGET', own, name), {}
    if session and string.find(name, '.', 1, true) then
      local keys = cjson.decode(session)
      for at = 1, #keys, AT_ONCE do
        local last = math.min(#keys, at + AT_ONCE - 1)
        for _, each in ipairs(redis.call('HMGET', held, unpack(keys, at, last))) do
          objects[#objects + 1] = each
        end
      end
    end
    if session then
      found[#found + 1] = {name, session, objects}
    end
  end
  return found
end

function answers.read(is_done)
  return is_done == 1 and redis.call('LRANGE', arrived, 0, OBJECTS - 1) or {}
end

-- Its term, or "" where it has no new one; whether the one that it said is over; how many replicas
-- there are; the bytes that the evaluator holds; whether sessions are offered, and objects to be
-- read. With a new term: all objects in buckets, and the keys of those that have fired.
function answers.beat(term, first)
  local objects, fired = {}, {}
  local current = redis.call('GET', evaluator)
  if term ~= '' and term == current then
    redis.call('DEL', arrived)
    objects = redis.call('HGETALL', held)
    local places = redis.call('ZRANGE', replicas, 0, -1)
    places[#places + 1] = ''
    for _, replica in ipairs(places) do
      for _, name in ipairs(redis.call('HKEYS', free .. replica)) do
        if string.find(name, '.', 1, true) then
          fired[#fired + 1] = redis.call('HGET', free .. replica, name)
        end
      end
    end
  else
    term = ''
  end
  return {
    term, current == ARGV[first] and 0 or 1, redis.call('ZCARD', replicas),
    tonumber(redis.call('GET', prefix .. 'size') or 0), redis.call('LLEN', offered),
    redis.call('LLEN', arrived), objects, fired
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
