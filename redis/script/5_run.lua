-- What reads, and the run of all calls of a group.
local reads = {}

-- reads.get returns the row of each job, and what is asked for of its payload and its history.
function reads.get(op)
  local result = {}
  for i, id in ipairs(op.ids) do
    local row = call('HGET', P .. 'm', id)
    local job = {m = row or ''}
    if row then
      job.b = call('HGET', P .. 'b', id) or ''
      if op.h == 1 then job.h = call('LRANGE', P .. 'y:' .. id, -1, -1) end
      if op.h == 2 then job.h = call('LRANGE', P .. 'y:' .. id, 0, -1) end
    end
    result[i] = job
  end
  return {r = result}
end

-- oldest returns since when the longest waiting job of a lane is ready. Each priority has its own oldest.
local function oldest(key, best)
  local from = '-'
  while true do
    local member = range(key, from, '+', 1)[1]
    if not member then return best end
    local since = sub(member, 4, 24)
    if not best or since < best then best = since end
    from = '[' .. format('%03.0f', tonumber(sub(member, 1, 3)) + 1)
  end
end

function reads.stats()
  local result = {}
  for i, name in ipairs(call('LRANGE', P .. 'q', 0, -1)) do
    local row = {n = name, p = paused.get(name) and true or false}
    counted(name, function(st, kind, n, code)
      row[st] = (row[st] or 0) + n
      if st == 'r' then row.o = oldest('r:' .. name .. '\0' .. kind .. '\0' .. code, row.o) end
    end)
    result[i] = row
  end
  return {r = result}
end

-- run carries out the calls, then what is due, then what reads and the fetches.
local function run()
  local results = {}
  -- A server whose memory is full refuses only the first write of a script, and never an HDEL.
  if R.full then call('HDEL', P .. 'v', '') end
  if R.p then put_plain() end
  for i, op in ipairs(R.ops) do
    if calls[op.v] then results[i] = calls[op.v](op, i) end
  end
  catch_up()
  flush()
  for i, op in ipairs(R.ops) do
    if reads[op.v] then results[i] = reads[op.v](op) end
    if op.v == 'fetch' then results[i] = fetch(op) end
  end
  flush()
  return results
end

-- due returns when something falls due next, "" for never.
local function due()
  local soonest = ''
  for _, key in ipairs({'d', 'x', 'c', 't'}) do
    local member = range(key, '-', '+', 1)[1]
    local at = member and sub(member, 1, 21)
    if at and (soonest == '' or at < soonest) then soonest = at end
  end
  return soonest, sub(range('l', '-', '+', 1)[1] or '', 1, 21)
end

-- reply returns an answer with the rows and the payloads of leased jobs.
local function reply(answer, results)
  local list = {answer}
  for _, result in ipairs(results) do
    if result and result.ids then
      prefetch(result.ids)
      for i = 1, #result.ids, portion do
        local last = math.min(i + portion - 1, #result.ids)
        local payloads = call('HMGET', P .. 'b', unpack(result.ids, i, last))
        for n = i, last do
          local id = result.ids[n]
          list[#list + 1] = metas[id] and encode(metas[id]) or raw(id) or ''
          list[#list + 1] = payloads[n - i + 1] or ''
        end
      end
    end
  end
  return list
end

-- The script runs again when its answer was lost. A group that was carried out is not carried out again:
-- its number and its answer are stored with its changes.
local mine = P .. 'z:' .. R.id
local stored = call('HGET', mine, 'n')
if stored and tonumber(stored) >= R.n then
  local answer = call('HGET', mine, 'a')
  return reply(answer, unpack_(answer).r)
end
local results = run()
local at, lease = due()
local queues = {}
for name in pairs(stirred) do queues[#queues + 1] = name end
local answer = {r = results, ev = events, c = next(totals) and totals or nil, due = at, ex = lease, more = more, bad = next(bad) and bad, t = turns, q = queues, x = cancelled}
local packed = cmsgpack.pack(answer)
if wrote then
  call('HSET', mine, 'n', text(R.n), 'a', packed)
  call('PEXPIRE', mine, R.ttl)
  if R.bell and #queues + #cancelled > 0 then
    call('PUBLISH', P .. 'bell', cmsgpack.pack({id = R.id, q = queues, x = cancelled}))
  end
end
return reply(packed, results)
