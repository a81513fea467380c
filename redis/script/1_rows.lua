-- The rows of a queue. The script reads them into tables, changes these, and writes all changes at the
-- end or before it reads a range of an index. Redis does not undo what a failed script has written, so
-- a change of one call begins to write only when nothing can refuse it any more.
--
-- docs/internals/redis.md describes the keys and the fields.
local P = KEYS[1]
local R = cmsgpack.unpack(ARGV[1])
local now, mono = R.now, R.mono
local call, unpack_ = redis.call, cmsgpack.unpack
local sub, format, char, byte = string.sub, string.format, string.char, string.byte
local portion = 1000 -- arguments of one command

local metas, dirty = {}, {}     -- the rows of jobs; false for a job that is not there
local records, notes = {}, {}    -- what to write of payloads and histories
local pending, counts = {}, {}  -- what to write of indexes and counts
local events, stirred, cancelled = {}, {}, {}
local wrote = false

-- bulk runs a command with many arguments, in portions. An even number of them stays together.
local function bulk(command, key, list)
  for i = 1, #list, portion do
    call(command, key, unpack(list, i, math.min(i + portion - 1, #list)))
    wrote = true
  end
end

-- hash is a hash of which the script reads and writes single fields.
local hashes = {}
local function hash(name)
  local h = {name = name, values = {}, changed = {}}
  function h.get(field)
    local v = h.values[field]
    if v == nil then
      v = call('HGET', P .. name, field)
      h.values[field] = v
    end
    return v
  end
  function h.set(field, value) -- false removes the field
    h.values[field] = value
    h.changed[field] = true
  end
  hashes[#hashes + 1] = h
  return h
end
local uniques, running, done, paused, known, global =
  hash('u'), hash('e'), hash('o'), hash('p'), hash('qi'), hash('v')

-- get returns the row of a job, or false.
local function get(id)
  local m = metas[id]
  if m == nil then
    local raw = call('HGET', P .. 'm', id)
    m = raw and unpack_(raw) or false
    metas[id] = m
  end
  return m
end

-- prefetch reads the rows of many jobs at once.
local function prefetch(ids)
  local missing = {}
  for _, id in ipairs(ids) do
    if metas[id] == nil then missing[#missing + 1] = id end
  end
  for i = 1, #missing, portion do
    local last = math.min(i + portion - 1, #missing)
    local raw = call('HMGET', P .. 'm', unpack(missing, i, last))
    for n = i, last do
      local blob = raw[n - i + 1]
      metas[missing[n]] = blob and unpack_(blob) or false
    end
  end
end

-- index notes that a member joins a sorted set, or leaves it.
local function index(key, member, joins)
  local set = pending[key]
  if not set then
    set = {}
    pending[key] = set
  end
  set[member] = joins
end

-- count adds to a count of a queue.
local function count(queue, field, n)
  local fields = counts[queue]
  if not fields then
    fields = {}
    counts[queue] = fields
  end
  fields[field] = (fields[field] or 0) + n
end

-- line notes a queue that has no row yet.
local added = {}
local function line(queue)
  if not known.get(queue) then
    known.set(queue, '1')
    added[#added + 1] = queue
  end
end

local function flush_rows()
  local sets, gone = {}, {}
  for id in pairs(dirty) do
    local m = metas[id]
    if m then
      sets[#sets + 1] = id
      sets[#sets + 1] = cmsgpack.pack(m)
    else
      gone[#gone + 1] = id
    end
  end
  dirty = {}
  bulk('HSET', P .. 'm', sets)
  bulk('HDEL', P .. 'm', gone)
  sets, gone = {}, {}
  for id, record in pairs(records) do
    if record then
      sets[#sets + 1] = id
      sets[#sets + 1] = record
    else
      gone[#gone + 1] = id
    end
  end
  records = {}
  bulk('HSET', P .. 'b', sets)
  bulk('HDEL', P .. 'b', gone)
end

local function flush_notes()
  for id, note in pairs(notes) do
    local key = P .. 'y:' .. id
    if note.gone then
      call('DEL', key)
      wrote = true
    end
    for _, entry in ipairs(note) do
      wrote = true
      if call('RPUSH', key, entry) > R.head + R.tail then
        call('LSET', key, R.head, '')
        call('LREM', key, 1, '')
      end
    end
  end
  notes = {}
end

local function flush_indexes()
  for key, set in pairs(pending) do
    local joins, leaves = {}, {}
    for member, is in pairs(set) do
      if is then
        joins[#joins + 1] = 0
        joins[#joins + 1] = member
      else
        leaves[#leaves + 1] = member
      end
    end
    bulk('ZREM', P .. key, leaves)
    bulk('ZADD', P .. key, joins)
  end
  pending = {}
  for queue, fields in pairs(counts) do
    for field, n in pairs(fields) do
      if n ~= 0 then
        wrote = true
        if call('HINCRBY', P .. 'n:' .. queue, field, n) == 0 then
          call('HDEL', P .. 'n:' .. queue, field)
        end
      end
    end
  end
  counts = {}
end

-- flush writes what has changed.
local function flush()
  bulk('RPUSH', P .. 'q', added)
  added = {}
  flush_rows()
  flush_notes()
  flush_indexes()
  for _, h in ipairs(hashes) do
    for field in pairs(h.changed) do
      wrote = true
      if h.values[field] then
        call('HSET', P .. h.name, field, h.values[field])
      else
        call('HDEL', P .. h.name, field)
      end
    end
    h.changed = {}
  end
end

-- range reads members of an index.
local function range(key, first, last, limit)
  if pending[key] then flush() end
  return call('ZRANGE', P .. key, first, last, 'BYLEX', 'LIMIT', 0, limit)
end
