-- One request after the other for wrk: arguments are a file with keys and templates, and a seed.
-- All servers of a round get the same seed, so the same requests.

local data, values, total, count, started

function init(args)
  data = dofile(args[1])
  math.randomseed(tonumber(args[2]))
  values = {}
  total = 0
  count = 0
  started = os.time()
  for _, template in ipairs(data.templates) do
    total = total + template.weight
    template.upTo = total
  end
end

local function choose()
  if #data.templates == 1 then return data.templates[1] end
  local at = math.random(total)
  for _, template in ipairs(data.templates) do
    if at <= template.upTo then return template end
  end
end

function request()
  local template = choose()
  for name, max in pairs(data.maxima) do values[name] = math.random(max) end
  local key = data.keys[math.random(#data.keys)]
  local head = template.method .. ' ' .. template.path:gsub('{(%w+)}', values)
    .. ' HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer ' .. key .. '\r\n'
  if template.isIdempotent then
    count = count + 1
    head = head .. 'Idempotency-Key: ' .. started .. '-' .. count .. '\r\n'
  end
  if not template.body then return head .. '\r\n' end
  local body = template.body:gsub('{(%w+)}', values)
  return head .. 'Content-Type: application/json\r\nContent-Length: ' .. #body .. '\r\n\r\n' .. body
end

function done(summary, latency)
  local e = summary.errors
  io.write(string.format(
    'RESULT {"requests":%d,"seconds":%f,"bytes":%d,"p50":%f,"p99":%f,"failed":%d}\n',
    summary.requests, summary.duration / 1e6, summary.bytes, latency:percentile(50) / 1e3,
    latency:percentile(99) / 1e3, e.connect + e.read + e.write + e.status + e.timeout))
end
