-- The calls that change jobs. Each returns its result, and changes nothing if that is a refusal.
local calls = {}

-- holder returns the job that has a unique key, and its state as it is about to be.
local function holder(m)
  local id = m.u and uniques.get(unique_of(m))
  local h = id and get(id)
  if not h then return end
  if (h.st == 'r' or h.st == 'd') and h.dl and h.dl <= now then return id, 'x' end
  if h.st == 'd' and h.at <= now then return id, 'r' end
  return id, h.st
end

-- put_plain stores the jobs of all calls whose jobs are plain and have IDs of their own making, so nothing can
-- refuse them. The process has packed them. R.p has runs of jobs that are alike, and the arguments after the
-- first are the ID and the record of each job.
local function put_plain()
  local seq, at = tonumber(global.get('seq') or '0'), 2
  local rows, payloads, ids, n = {}, {}, {}, 1
  for _, run in ipairs(R.p) do
    local members, head, tail, place = {}, run.head, run.tail, sub(run.head, run.st == 'r' and 3 or 6)
    for i = 1, 2 * run.n, 2 do
      seq = seq + 1
      local id, s = ARGV[at], text(seq)
      local row = head .. s .. tail
      rows[n], rows[n + 1] = id, row
      payloads[n], payloads[n + 1] = id, ARGV[at + 1]
      ids[n], ids[n + 1] = '0', id
      members[i], members[i + 1] = '0', place .. s .. id
      if R.ev then event('enqueued', id, row) end
      at, n = at + 2, n + 2
    end
    if not R.ev then total('enqueued', run.n) end
    line(run.q)
    if run.st == 'r' then stirred[run.q] = true end
    count(run.q, run.count, run.n)
    bulk('ZADD', P .. run.key, members)
  end
  global.set('seq', text(seq))
  bulk('HSET', P .. 'm', rows)
  bulk('HSET', P .. 'b', payloads)
  bulk('ZADD', P .. 'i', ids)
end

-- calls.put stores jobs. It returns the ID of each, and whether another job has its unique key.
function calls.put(op)
  local batch, earlier, fresh = {}, {}, 0
  local ids = {}
  for i, job in ipairs(op.jobs) do ids[i] = job.id end
  prefetch(ids)
  for i, job in ipairs(op.jobs) do
    local m = job.m
    local n = {id = job.id, m = m, record = job.b}
    local h, st = holder(m)
    local before = m.u and earlier[unique_of(m)]
    if before then h, st = before.id, before.st end
    if not h or not blocks(m, st) then
      if get(n.id) or damaged[n.id] then return {e = 'taken', id = n.id} end
    elseif job.c == 0 then
      n.id, n.existing = h, true
    elseif job.c == 1 or st == 'l' then
      return {e = 'unique', i = i, id = h, st = st}
    else
      n.id = h
      if before then before.dropped = true end
    end
    n.st = m.dl and m.dl <= now and 'x' or m.at > now and 'd' or 'r'
    if m.u and not n.existing then earlier[unique_of(m)] = n end
    if not n.existing then fresh = fresh + 1 end
    batch[i] = n
  end
  local seq = tonumber(global.get('seq') or '0')
  if fresh > 0 then global.set('seq', text(seq + fresh)) end
  local result = {}
  for i, n in ipairs(batch) do
    result[i] = {n.id, n.existing or false}
    if not n.existing then
      seq = seq + 1
      if not n.dropped then
        local kind, old = 'enqueued', get(n.id)
        if old then
          kind = 'replaced'
          take(n.id, old)
          forget(n.id, old)
        end
        n.m.n = text(seq)
        store(n.id, n.m, n.record)
        hold(n.id, n.m)
        schedule(n.id, n.m)
        event(kind, n.id, n.m)
      end
    end
  end
  return {r = result}
end

-- settled ends one lease. No settlement leaves a crash behind, and of a job that was cancelled only a
-- success counts.
local function settled(id, m, s, run)
  end_lease(id, m)
  m.c = nil
  if s.o == 'ack' then
    m.a = (m.a or 0) + 1
    if m.e then set_done(effect_of(m), add(now, m.et)) end
    complete(id, m)
    m.co = now -- for the event of a job whose record is not kept
    return event('succeeded', id, m, run)
  elseif s.o == 'nack' or s.o == 'abandon' then
    if s.nc then
      note(id, m, (m.a or 0) + 1, s)
    else
      m.a = (m.a or 0) + 1
      note(id, m, m.a, s)
    end
  elseif m.x then
    run.c = 'it was cancelled'
  end
  if m.x then return make_dead(id, m, 'cancelled', run) end
  if s.o == 'abandon' then return make_dead(id, m, s.r, run) end
  local kind = 'released'
  if s.o == 'nack' then
    kind, m.b, m.at = 'retried', now, s.at
    schedule(id, m)
  elseif s.o == 'snooze' then
    kind, m.at = 'snoozed', s.at
    if s.ran then m.a = nil end
    schedule(id, m)
  else
    put(id, m, 'r')
  end
  event(kind, id, m, run)
end

local tails = {} -- rows of acked jobs as tables, by their tails

-- calls.ack ends leases of jobs that succeeded. It returns the numbers of those that were lost.
function calls.ack(op, number)
  local ids, lost = {}, {}
  for at = 1, #op.l, 24 do ids[#ids + 1] = sub(op.l, at, at + 15) end
  prefetch(ids)
  local gone, leases, n, tally = {}, {}, 0, {}
  for i, id in ipairs(ids) do
    local token = sub(op.l, 24 * i - 7, 24 * i)
    local row = not R.ev and plain(id, is_leased)
    if not row then
      local m = get(id)
      if m and m.st == 'l' and m.tk == token then
        settled(id, m, {o = 'ack'}, {op = number, i = i})
      else
        lost[#lost + 1] = i
      end
    else
      local tail = sub(row, 101)
      tails[tail] = tails[tail] or read(row)
      if sub(row, 72, 79) ~= token or not tails[tail] then
        lost[#lost + 1] = i
      else
        tally[tail], n = (tally[tail] or 0) + 1, n + 1
        gone[n], leases[n] = id, sub(row, 80, 100) .. sub(row, 27, 42) .. id
        raws[id] = false
      end
    end
  end
  for tail, k in pairs(tally) do
    local m = tails[tail]
    count(m.q, 'l' .. m.k, -k)
  end
  if n > 0 then total('succeeded', n) end
  bulk('ZREM', P .. 'l', leases)
  bulk('ZREM', P .. 'i', gone)
  bulk('HDEL', P .. 'm', gone)
  bulk('HDEL', P .. 'b', gone)
  return {lost = lost}
end

-- calls.settle ends leases. It returns the numbers of those that were lost.
function calls.settle(op, number)
  local ids, lost = {}, {}
  for i, s in ipairs(op.s) do ids[i] = s.id end
  prefetch(ids)
  for i, s in ipairs(op.s) do
    local m = get(s.id)
    if m and m.st == 'l' and m.tk == s.tk then
      settled(s.id, m, s, {op = number, i = i})
    else
      lost[#lost + 1] = i
    end
  end
  return {lost = lost}
end

-- calls.extend extends leases. It returns the numbers of those that were lost, and of those whose job
-- was cancelled.
function calls.extend(op)
  local lost, ended = {}, {}
  for i, l in ipairs(op.l) do
    local m = get(l.id)
    if m and m.st == 'l' and m.tk == l.tk then
      take(l.id, m)
      m.ex = op.ex
      put(l.id, m, 'l')
      if m.x then ended[#ended + 1] = i end
    else
      lost[#lost + 1] = i
    end
  end
  return {lost = lost, x = ended}
end

function calls.reap() return {n = reap()} end

function calls.pause(op)
  line(op.q)
  paused.set(op.q, op.on and '1' or false)
  if not op.on then stirred[op.q] = true end
  return {}
end

local fits = {
  retry = function(st) return st == 'x' end,
  cancel = function(st) return st ~= 'x' and st ~= 'c' end,
  delete = function(st) return st == 'x' or st == 'c' end,
  ['run-now'] = function(st) return st == 'd' end,
  ['release-key'] = function() return false end, -- no job holds a key here
}

-- changed makes a change to a job that it applies to.
local function changed(op, id, m)
  if op.verb == 'cancel' and m.st == 'l' then
    if not m.x then
      m.x, dirty[id] = 1, true
      cancelled[#cancelled + 1] = {id, m.tk}
      event('cancelled', id, m)
    end
    return
  end
  take(id, m)
  if op.verb == 'retry' then
    m.dr, m.da, m.c, m.at = nil, nil, nil, now
    if not op.keep then m.a = nil end
    hold(id, m)
    put(id, m, 'r')
    event('revived', id, m)
  elseif op.verb == 'run-now' then
    if m.at > now then m.at = now end
    put(id, m, 'r')
    event('run_now', id, m)
  elseif op.verb == 'delete' then
    forget(id, m)
    event('deleted', id, m)
  else
    make_dead(id, m, 'cancelled', {c = 'it was cancelled'})
  end
end

-- decide returns why a change does not apply to a job, or nil. Claims are the unique keys that jobs of
-- a dry run would take.
local function decide(op, id, claims)
  local m = get(id)
  if not m then return {e = 'none'} end
  if not fits[op.verb](m.st) then return {e = 'state', st = m.st} end
  if op.no and op.no[id] then return {e = 'if'} end
  if op.verb ~= 'retry' then return nil end
  if m.dl and m.dl <= now then return {e = 'late'} end
  local h, st = holder(m)
  if m.u and claims[unique_of(m)] then h, st = claims[unique_of(m)], 'r' end
  if h and h ~= id and blocks(m, st) then return {e = 'unique', id = h, st = st} end
  return nil
end

-- moved reports whether a job has changed since the caller read it. Seen maps IDs to rows.
local function moved(seen)
  for id, row in pairs(seen or {}) do
    local m = get(id)
    if (call('HGET', P .. 'm', id) or '') ~= row or dirty[id] then return true end
  end
  return false
end

-- calls.change carries out a change on each job. It returns the refusal of each, an empty one if there
-- is none, and nothing at all if a job has moved since its condition was evaluated.
function calls.change(op)
  if moved(op.seen) then return {again = true} end
  local result, claims = {}, {}
  for i, id in ipairs(op.ids) do
    local refused = decide(op, id, claims)
    result[i] = refused or {e = ''}
    if not refused then
      local m = get(id)
      if not op.dry then
        changed(op, id, m)
      elseif op.verb == 'retry' and m.u then
        claims[unique_of(m)] = id
      end
    end
  end
  return {r = result}
end

-- calls.transfer replaces a dead job.
function calls.transfer(op)
  local job = op.job
  if moved(op.seen) then return {again = true} end
  local old = get(job.id)
  if not old then return {e = 'none'} end
  if old.st ~= 'x' then return {e = 'state', st = old.st} end
  if op.no then return {e = 'if'} end
  take(job.id, old)
  forget(job.id, old)
  local seq = tonumber(global.get('seq') or '0') + 1
  global.set('seq', text(seq))
  job.m.n = text(seq)
  store(job.id, job.m, job.b)
  schedule(job.id, job.m)
  event('replaced', job.id, job.m)
  return {}
end

-- arrival is the state that a restored job will have.
local function arrival(m)
  if m.st == 'x' or m.st == 'c' then return m.st end
  if m.st == 'l' or m.dl and m.dl <= now then return 'x' end
  if m.st == 'd' and m.at <= now then return 'r' end
  return m.st
end

-- taken returns the job that keeps others with the unique key of a job out.
local function taken(m)
  local id, st = holder(m)
  if id and blocks(m, st) then return id, st end
end

-- calls.restore stores jobs in their states, and effects.
function calls.restore(op)
  for i, job in ipairs(op.jobs) do
    if get(job.id) or damaged[job.id] then return {e = 'taken', i = i} end
    local id, st = taken(job.m)
    if id and blocks(job.m, arrival(job.m)) then return {e = 'unique', i = i, id = id, st = st} end
  end
  local seq = tonumber(global.get('seq') or '0')
  for _, job in ipairs(op.jobs) do
    local m, st = job.m, job.m.st
    seq = seq + 1
    m.n = text(seq)
    local held = taken(m)
    store(job.id, m, job.b)
    if not held or blocks(m, arrival(m)) then hold(job.id, m) end
    if job.h then notes[job.id] = job.h end
    m.st = nil
    event('enqueued', job.id, m)
    if st == 'd' then
      schedule(job.id, m)
    elseif st == 'l' then
      make_dead(job.id, m, 'cancelled', {c = 'it was cancelled, and restored without its run'})
    else
      put(job.id, m, st)
    end
  end
  if #op.jobs > 0 then global.set('seq', text(seq)) end
  for _, e in ipairs(op.effects) do
    if e.til > now then set_done(e.f, e.til) end
  end
  return {}
end

function calls.tick() return {} end
