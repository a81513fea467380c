-- The rows of a queue. The script reads them into tables, changes these, and writes all changes at the
-- end or before it reads a range of an index. Redis does not undo what a failed script has written, so
-- a change of one call begins to write only when nothing can refuse it any more.
--
-- docs/internals/redis.md describes the keys and the fields.
local P = KEYS[1]
local R = cmsgpack.unpack(ARGV[1])
local now, mono = R.now, R.mono
local call, unpack_ = redis.call, cmsgpack.unpack
local is_ready, is_leased = 114, 108 -- the bytes of states
local sub, format, char, byte = string.sub, string.format, string.char, string.byte
local portion = 1000 -- arguments of one command

local raws = {}                 -- rows of jobs as they are stored; false for a job that is not there
local metas, dirty = {}, {}     -- rows that were read as tables, which then count instead
local records, notes = {}, {}    -- what to write of payloads and histories
local pending, counts = {}, {}  -- what to write of indexes and counts
local events, totals, stirred, cancelled = {}, {}, {}, {}
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

-- A row is text with fixed places: 1 the state, 2 whether it is plain, 3 rank, 6 time, 27 sequence, 43 size
-- of the payload. A leased job goes on with 51 the start of its lease, 72 its token, 80 its expiry. Then comes
-- a tail in MessagePack: queue, kind, and what few jobs have. A row is plain, '0', if its tail has nothing else.
local fixed = {st = true, p = true, at = true, n = true, z = true, ls = true, tk = true, ex = true}

local function decode(row)
  local leased = byte(row) == is_leased
  local m = unpack_(sub(row, leased and 101 or 51))
  if byte(row) ~= 32 then m.st = sub(row, 1, 1) end
  m.p, m.at, m.n, m.z = sub(row, 3, 5), sub(row, 6, 26), sub(row, 27, 42), sub(row, 43, 50)
  if leased then m.ls, m.tk, m.ex = sub(row, 51, 71), sub(row, 72, 79), sub(row, 80, 100) end
  return m
end

local function encode(m)
  local tail, more = {}, 0
  for field, value in pairs(m) do
    if not fixed[field] then tail[field], more = value, more + 1 end
  end
  return (m.st or ' ') .. (more == 2 and '0' or '1') .. m.p .. m.at .. m.n .. m.z ..
    (m.st == 'l' and m.ls .. m.tk .. m.ex or '') .. cmsgpack.pack(tail)
end

-- raw returns the row of a job that was not read as a table, or false.
local function raw(id)
  local row = raws[id]
  if row == nil then
    row = call('HGET', P .. 'm', id)
    raws[id] = row
  end
  return row
end

-- read returns a row as a table, or nil if the row is damaged: it cannot be decoded, or lacks what its state and its
-- keys need.
local function read(row)
  local ok, m = pcall(decode, row)
  if ok and type(m.q) == 'string' and type(m.k) == 'string' and (m.st ~= 'x' or m.da) and
    (m.st ~= 'c' or m.co and m.rt) and (not m.u or m.ui) and (not m.e or m.et) then return m end
end

-- get returns the row of a job as a table, or false. A job whose row is damaged is as if it were not there.
local damaged, bad = {}, {}
local function get(id)
  local m = metas[id]
  if m == nil then
    local row = raw(id)
    m = row and read(row) or false
    metas[id] = m
    if row and not m then damaged[id], bad[#bad + 1] = true, id end
  end
  return m
end

-- is_plain reports whether a row is plain and has a state, which is a byte.
local function is_plain(row, state)
  local st, is = byte(row, 1, 2)
  return st == state and is == 48
end

-- plain returns the row of a job if it is plain, has a state, and was not read as a table.
local function plain(id, state)
  local row = metas[id] == nil and raw(id)
  return row and is_plain(row, state) and row
end

-- prefetch reads the rows of many jobs at once.
local function prefetch(ids)
  local missing = {}
  for _, id in ipairs(ids) do
    if metas[id] == nil and raws[id] == nil then missing[#missing + 1] = id end
  end
  for i = 1, #missing, portion do
    local last = math.min(i + portion - 1, #missing)
    local rows = call('HMGET', P .. 'm', unpack(missing, i, last))
    for n = i, last do raws[missing[n]] = rows[n - i + 1] end
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
      sets[#sets + 1] = encode(m)
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
        joins[#joins + 1] = '0' -- a number would be formatted each time
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
