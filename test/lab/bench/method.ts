/** How it is measured, against what, and what the figures do not say: the end of BENCHMARKS.md. */
export const method = `## How it is measured

- The benchmark starts every server itself, in a fresh process for each workload, with \`NODE_ENV=production\` and the
  default log level \`info\`, at which each of them writes one line for every request. The gateway runs as \`npm start\`
  runs it.
- All servers of a workload run at the same time, on the same Node.js. Each is warmed up at 8 connections, and then
  measured at 1, 4, 8, 32 and 256: the servers are loaded one after the other, in rounds that change direction. A ratio compares two servers
  within a round; the tables show the median over the rounds. Rates drift on a shared or virtual machine; these ratios
  drift less.
- Where the machine has processor time left, the rate follows from latency, and processor time says what a request costs;
  at 32 connections the rate says what the machine can do. Nested questions are compared by processor time there, too,
  because much of their time is PostgreSQL's.
- The load comes from another process, over connections that stay open. It sends random ids and a random one of the
  API keys with each request. All servers of a round get the same requests.
- The gateway asks the database once for equal questions that arrive together. As a control, the ten different GETs and
  the ten different queries differ in tables, filters, selections and sizes.
- Before the rounds, all servers must return the same data to the same questions. One failed request ends the section.
- A section fails when Redis was unreachable, because counting in memory is cheaper. After each workload, the quota that
  the gateway has counted must equal what was sent.
- A row that is taken from is locked until its order is on the disk, so orders for one pet cannot be faster than the disk, whatever
  the number of gateways. The table of the machine has the time that the disk takes.
- The tables that a workload writes to are restored before each round, and autovacuum is off for them.
- Processor time and memory come from \`/proc\` (user and system time of all threads, \`VmRSS\` after each round), Redis' from
  \`INFO cpu\`, PostgreSQL's from its processes.
- Other programs that use Redis or PostgreSQL during the run distort the figures. Run the benchmark alone.
- The benchmark creates databases of its own and claims an empty logical database of Redis. It refuses all others, and
  removes both at the end, also after an error or Ctrl-C. Where the server of \`BENCH_DATABASE_URL\` has no
  \`pg_stat_statements\`, all databases are on a PostgreSQL server that the benchmark starts for itself.

## The peers

Their code is in \`test/lab/bench/peers\`. All have a pool of 10 connections and prepared statements.

- **Fastify + Prisma, keys and limits:** JSON schemas for inputs and responses, a key cache, two windows of
  rate-limiter-flexible in Redis, consumed in parallel, \`X-RateLimit-*\` headers, keyset pages with \`Link\`. Lists by
  name are SQL, and have indexes of their own.
- **Fastify + pg, bare:** the same routes and schemas on \`pg\` alone. No keys, no limits.
- **Mercurius + Prisma, keys and limits:** compiled queries, a loader for each relation, the same keys and limits.
- **PostGraphile 5, neither keys nor limits:** a product of others. It makes its schema from the same tables, and runs
  with the options that its documentation recommends for production, the simplified names and the filters. It is asked
  the same in its own words. It writes no line for a request.
- **Yoga + SOFA + Pothos + Prisma, naive:** the gateway's own libraries, put together as their documentation shows.

## What these figures do not say

- The peers do less than the gateway: no bans, no quota over two surfaces, no \`ETag\`, no deprecation headers, no CORS,
  no metrics, no cost of a GraphQL document.
- The load generator, PostgreSQL and Redis share the machine's cores with the server. On a small machine their work
  bounds the rates; processor time for each request compares the servers more directly.
- The load is closed: a connection sends its next request when it has the last answer. So latency at full load includes
  queueing, and short stalls are underrepresented in p99.
- Loopback has no network latency and no TLS. Both would bring the ratios closer to 1.
`
