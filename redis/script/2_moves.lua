-- The moves between the states. A job is taken out of the index of its state, changed, and put into
-- the next one. The states are r ready, d delayed, l leased, x dead, and c completed.

-- add returns a time a duration later. Both are 12 digits of seconds and 9 of nanoseconds.
local function add(t, d)
  local s, n = tonumber(sub(t, 1, 12)) + tonumber(sub(d, 1, 12)), tonumber(sub(t, 13)) + tonumber(sub(d, 13))
  if n >= 1e9 then s, n = s + 1, n - 1e9 end
  return format('%012.0f%09.0f', math.min(s, 999999999999), n)
end

local function text(n) return format('%016d', n) end

-- lane is the lane of a ready job: of those that crashed never, once, or more often, the first attempts
-- and the retries, with and without an idempotency key.
local function lane(m)
  return char(65 + 4 * math.min(m.c or 0, 2) + ((m.a or 0) > 0 and 2 or 0) + (m.e and 1 or 0))
end

-- place returns the index of a job, its member there, and the field of its count.
local function place(id, m)
  local st = m.st
  if st == 'r' then
    local l = lane(m)
    return 'r:' .. m.q .. '\0' .. m.k .. '\0' .. l, m.p .. m.at .. m.n .. id, l .. m.k
  elseif st == 'd' then
    return 'd', m.at .. m.n .. id, 'd' .. m.k
  elseif st == 'l' then
    return 'l', m.ex .. m.n .. id, 'l' .. m.k
  elseif st == 'x' then
    return 'f:' .. m.q, m.da .. m.n .. id, 'x' .. m.k
  end
  return 'c', add(m.co, m.rt) .. m.n .. id, 'c' .. m.k
end

local function move(id, m, joins)
  local key, member, field = place(id, m)
  index(key, member, joins)
  count(m.q, field, joins and 1 or -1)
  if m.dl and (m.st == 'r' or m.st == 'd') then index('x', m.dl .. m.n .. id, joins) end
  dirty[id] = true
end

local function take(id, m) move(id, m, false) end

local function put(id, m, st)
  m.st = st
  line(m.q)
  move(id, m, true)
  if st == 'r' then stirred[m.q] = true end
end

-- schedule makes a job ready or delayed, by its time.
local function schedule(id, m) put(id, m, m.at > now and 'd' or 'r') end

local function total(kind, n) totals[kind] = (totals[kind] or 0) + n end

-- event counts and notes what happened to a job, as it is now: a table or a row.
local function event(kind, id, m, more)
  total(kind, 1)
  if R.ev or kind == 'died' or kind == 'reaped' then
    local e = more or {}
    e.t, e.id, e.m = kind, id, type(m) == 'string' and m or encode(m)
    events[#events + 1] = e
  end
end

local function unique_of(m) return m.q .. '\0' .. m.k .. '\0' .. m.u end
local function effect_of(m) return m.k .. '\0' .. m.e end

-- blocks reports whether a job in a state keeps out one with the same unique key.
local function blocks(m, st) return string.find(m.ui, st, 1, true) ~= nil end

local function hold(id, m)
  if m.u then uniques.set(unique_of(m), id) end
end

-- forget removes a job that is in no index.
local function forget(id, m)
  if m.u and uniques.get(unique_of(m)) == id then uniques.set(unique_of(m), false) end
  m.st = nil
  metas[id], dirty[id], records[id] = false, true, false
  if (m.f or 0) > 0 then notes[id] = {gone = true} end
  index('i', id, false)
end

-- store stores a new job.
local function store(id, m, record)
  metas[id], records[id] = m, record
  index('i', id, true)
end

-- note adds an entry to the history of a job.
local function note(id, m, attempt, failure)
  m.f = (m.f or 0) + 1
  local list = notes[id]
  if not list then
    list = {}
    notes[id] = list
  end
  list[#list + 1] = cmsgpack.pack({attempt, now, failure.e or '', failure.s or ''})
end

local function make_dead(id, m, reason, more)
  m.dr, m.da, m.x, m.b = reason, now, nil, nil
  put(id, m, 'x')
  event('died', id, m, more)
end

-- is_done reports whether the effect of a job is there already.
local function is_done(m)
  local til = m.e and done.get(effect_of(m))
  return til and til > now
end

-- set_done records that an effect is done until a time, unless it is done for longer: a restore may have said so
-- during the lease.
local function set_done(field, til)
  local old = done.get(field)
  if old and old >= til then return end
  if old then index('t', old .. '0' .. field, false) end
  done.set(field, til)
  index('t', til .. '0' .. field, true)
end

-- complete ends a job that has no more to do: it is removed, or its record is kept for a time.
local function complete(id, m)
  if not m.rt then
    forget(id, m)
    return
  end
  m.c, m.x, m.b, m.co = nil, nil, nil, now
  put(id, m, 'c')
end

local function repeats() return tonumber(global.get('repeats') or '0') end

local function end_lease(id, m)
  take(id, m)
  if m.e and running.get(effect_of(m)) == id then
    running.set(effect_of(m), false)
    stirred[m.q] = true
  end
  if (m.c or 0) >= 2 then
    global.set('repeats', text(repeats() - 1))
    stirred[m.q] = true
  end
  m.ls, m.tk, m.ex, m.b = nil, nil, nil, nil
end

-- What falls due.

local left = R.due -- how many jobs this call moves at most because they are due
local more = false

local function each_due(key, fn)
  while left > 0 do
    local members = range(key, '-', '(' .. now .. ':', math.min(left, portion))
    local ids = {}
    for i, member in ipairs(members) do ids[i] = sub(member, -16) end
    if key ~= 't' then prefetch(ids) end
    for i, member in ipairs(members) do
      index(key, member, false)
      local m = key == 't' or get(ids[i])
      if m then fn(ids[i], m, member) end
    end
    left = left - #members
    if #members < portion then break end
  end
  more = more or left <= 0
end

-- crash takes back a lease.
local function crash(id, m)
  local cancelled_ = m.x
  end_lease(id, m)
  m.c = (m.c or 0) + 1
  m.st = 'r'
  event('reaped', id, m)
  if cancelled_ then
    make_dead(id, m, 'cancelled', {c = 'it was cancelled, and its lease expired'})
  elseif R.mc >= 0 and m.c >= R.mc then
    local cause = 'crashed ' .. m.c .. ' times in a row'
    note(id, m, (m.a or 0) + 1, {e = cause})
    make_dead(id, m, 'poison', {c = cause})
  else
    put(id, m, 'r')
  end
end

-- reap takes back the leases that have expired, and returns how many.
local function reap()
  local n = 0
  while left > 0 do
    local members = range('l', '-', '(' .. mono .. ':', math.min(left, portion))
    for _, member in ipairs(members) do
      local id = sub(member, -16)
      index('l', member, false)
      local m = get(id)
      if m then crash(id, m) end
    end
    n, left = n + #members, left - #members
    if #members < portion then break end
  end
  more = more or left <= 0
  return n
end

-- catch_up moves what is due. Deadlines come after all that may put a job into ready or delayed: a job that
-- is put there past its deadline is dead at once. A job whose row is damaged or missing leaves the index alone.
local function catch_up()
  each_due('d', function(id, m)
    take(id, m)
    put(id, m, 'r')
  end)
  reap()
  each_due('x', function(id, m)
    take(id, m)
    make_dead(id, m, 'deadline', {c = 'its deadline has passed'})
  end)
  each_due('c', function(id, m)
    take(id, m)
    forget(id, m)
  end)
  each_due('t', function(_, _, member)
    local field = sub(member, 23)
    if done.get(field) == sub(member, 1, 21) then done.set(field, false) end
  end)
end
