-- Fetch: queues take turns, and in its turn a queue gives its first job, or the first retry where those
-- have a share of their own. The turns are start-time fair queuing; see package memory.
local whole, last_turn, rounding = 4294967296, 2 ^ 51, 1e-9
local turns = R.t or {now = 0, served = 0, q = {}}

local function turn(name)
  local t = turns.q[name]
  if not t then
    t = {f = 0, s = 0, c = 0}
    turns.q[name] = t
  end
  return t
end

local function start(t) return math.max(turns.now, t.f) end

-- took notes that a queue has given n jobs one after the other.
local function took(t, n, weight, credit)
  local step = math.floor(whole / weight)
  turns.served = turns.served + n
  turns.now = start(t) + (n - 1) * step
  t.f, t.s, t.c = turns.now + step, turns.served, credit
  if turns.now >= last_turn then
    for _, other in pairs(turns.q) do other.f = other.f - math.min(other.f, turns.now) end
    turns.now = 0
  end
end

-- counted calls fn for each count of a queue.
local function counted(queue, fn)
  local fields = call('HGETALL', P .. 'n:' .. queue)
  for i = 1, #fields, 2 do
    local st, code = sub(fields[i], 1, 1), nil
    if byte(st) < 97 then st, code = 'r', st end -- the code of a lane
    fn(st, sub(fields[i], 2), tonumber(fields[i + 1]), code)
  end
end

-- lanes returns the lanes of a queue that have jobs of the kinds that a fetch asks for.
local function lanes(f, queue)
  local list = {}
  counted(queue, function(st, kind, n, code)
    if st == 'r' and n > 0 and (not f.kinds or f.kinds[kind]) then
      local number = byte(code) - 65
      list[#list + 1] = {
        key = 'r:' .. queue .. '\0' .. kind .. '\0' .. code, crashes = math.floor(number / 4),
        retry = math.floor(number / 2) % 2 == 1, keyed = number % 2 == 1, list = {}, i = 1,
        queue = queue, kind = kind, code = code, n = 0,
      }
    end
  end)
  return list
end

local function peek(f, l)
  local n = math.max(1, math.min(f.max - #f.ids, 200))
  l.list = range(l.key, l.last and '(' .. l.last or '-', '+', n)
  l.i, l.fin, l.last = 1, #l.list < n, l.list[#l.list]
  l.ids = {}
  for i, member in ipairs(l.list) do l.ids[i] = sub(member, -16) end
  prefetch(l.ids)
end

-- head returns where the first job of a lane that may be leased or skipped stands in the order, or nil.
local function head(f, l)
  while true do
    while l.i <= #l.list do
      local member = l.list[l.i]
      local m = l.keyed and get(sub(member, -16))
      l.done = m and is_done(m)
      if not m or l.done or not running.get(effect_of(m)) then return sub(member, 1, 40) end
      l.i = l.i + 1
    end
    if l.fin then return nil end
    peek(f, l)
  end
end

-- first returns the lane with the first job of a queue that may start. A job that it meets whose effect
-- is done ends without an attempt.
local function first(f, q, retry)
  while true do
    local best, rank
    for _, l in ipairs(q.lanes) do
      if (retry == nil or l.retry == retry) and (l.crashes == 0 or f.idle > 0 and (l.crashes == 1 or repeats() == 0)) then
        local r = head(f, l)
        if r and (not rank or r < rank) then best, rank = l, r end
      end
    end
    if not best or not best.done then return best end
    local id = sub(best.list[best.i], -16)
    local m = get(id)
    best.i = best.i + 1
    take(id, m)
    complete(id, m)
    event('skipped', id, m)
  end
end

-- pick returns the lane whose job a queue gives in its turn, and the credit of its retries after it.
local function pick(f, q)
  if f.share == 0 then return first(f, q), q.turn.c end
  local again, fresh = first(f, q, true), first(f, q, false)
  if not again or not fresh then return again or fresh, q.turn.c end
  local credit = q.turn.c + f.share
  if credit < 1 - rounding then return fresh, credit end
  return again, credit - 1
end

-- claim_plain leases a job whose row is plain. The member of the lease ends as that of the lane.
local function claim_plain(f, l, member, id, row)
  row = 'l' .. sub(row, 2, 50) .. f.lease .. sub(row, 51)
  raws[id] = row
  l.from, l.to, l.n = l.from or member, member, l.n + 1
  local n = #f.rows
  f.rows[n + 1], f.rows[n + 2] = id, row
  f.leases[n + 1], f.leases[n + 2] = '0', f.ex .. sub(member, 25)
  f.bytes = f.bytes + (tonumber(sub(row, 43, 50)) or 0)
  if R.ev then event('fetched', id, row) else f.fetched = f.fetched + 1 end
end

local function claim(f, l)
  local member, id = l.list[l.i], l.ids[l.i]
  l.i = l.i + 1
  local row = plain(id, is_ready)
  if row then
    f.ids[#f.ids + 1] = id
    return claim_plain(f, l, member, id, row)
  end
  local m = get(id)
  if not m then -- damaged or missing
    index(l.key, member, false)
    return count(l.queue, l.code .. l.kind, -1)
  end
  f.ids[#f.ids + 1] = id
  take(id, m)
  m.ls, m.tk, m.ex = now, f.tk, f.ex
  put(id, m, 'l')
  if m.e then running.set(effect_of(m), id) end
  if (m.c or 0) >= 2 then global.set('repeats', text(repeats() + 1)) end
  if (m.c or 0) > 0 then f.idle = f.idle - 1 end
  f.bytes = f.bytes + (tonumber(m.z) or 0)
  event('fetched', id, m)
end

-- claimed writes the leases of plain jobs. Their lanes are without keys, so a fetch has leased all members of a
-- lane from the first to the last of them.
local function claimed(f)
  if f.fetched > 0 then total('fetched', f.fetched) end
  bulk('HSET', P .. 'm', f.rows)
  bulk('ZADD', P .. 'l', f.leases)
  for _, q in ipairs(f.from) do
    for _, l in ipairs(q.lanes) do
      if l.n > 0 then
        call('ZREMRANGEBYLEX', P .. l.key, '[' .. l.from, '[' .. l.to)
        count(l.queue, l.code .. l.kind, -l.n)
        count(l.queue, 'l' .. l.kind, l.n)
      end
    end
  end
end

-- next_job leases the job whose turn it is. It reports whether there is one.
local function next_job(f)
  local tried = {}
  for _ = 1, #f.from do
    local best
    for i, q in ipairs(f.from) do
      if not tried[i] and (not best or start(q.turn) < start(f.from[best].turn) or
        start(q.turn) == start(f.from[best].turn) and q.turn.s < f.from[best].turn.s) then best = i end
    end
    tried[best] = true
    local q = f.from[best]
    local l, credit = pick(f, q)
    if l then
      took(q.turn, 1, q.weight, credit)
      claim(f, l)
      return true
    end
  end
  return false
end

-- lone_lane leases jobs of a lane that has no other lane beside it, and whose jobs may all start.
local function lone_lane(f, q, l)
  while #f.ids < f.max and f.bytes < f.size do
    if l.i > #l.list then
      if l.fin then break end
      peek(f, l)
      if #l.list == 0 then break end
    end
    claim(f, l)
  end
  if #f.ids > 0 then took(q.turn, #f.ids, q.weight, q.turn.c) end
end

-- gives_up reports whether a fetch that found nothing does not wait for what the queues still hold.
local function gives_up(f)
  if f.wait <= 1 then return f.wait == 1 end
  flush()
  for _, q in ipairs(f.q) do
    local busy = false
    counted(q.n, function(st, kind, n)
      if n > 0 and (not f.kinds or f.kinds[kind]) and (st == 'r' or st == 'l' or st == 'd' and f.wait == 3) then busy = true end
    end)
    if busy then return false end
  end
  return true
end

-- fetch leases jobs. It returns their IDs. While jobs are left that are past their deadline, it waits for the next
-- run of the script, so that it leases none of them.
local function fetch(f)
  flush()
  if more and range('x', '-', '(' .. now .. ':', 1)[1] then return {ids = {}, none = false} end
  f.ids, f.rows, f.leases, f.from, f.bytes, f.fetched, f.idle = {}, {}, {}, {}, 0, 0, f.max - f.ahead
  f.lease = now .. f.tk .. f.ex
  for _, q in ipairs(f.q) do
    if not paused.get(q.n) then
      f.from[#f.from + 1] = {lanes = lanes(f, q.n), turn = turn(q.n), weight = q.w}
    end
  end
  local q = #f.from == 1 and f.from[1]
  if q and #q.lanes == 1 and q.lanes[1].crashes == 0 and not q.lanes[1].keyed then
    lone_lane(f, q, q.lanes[1])
  else
    while #f.ids < f.max and f.bytes < f.size and next_job(f) do end
  end
  claimed(f)
  return {ids = f.ids, none = #f.ids == 0 and gives_up(f)}
end
