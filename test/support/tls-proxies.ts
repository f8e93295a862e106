import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { isListening } from './haproxy.js'
import { freePort } from './ports.js'

// nginx and Caddy with the examples in docs/one-machine: only addresses and certificates are others.

export const HOST = 'pets.example.com'

const runs = (program: string, ...args: string[]) => spawnSync(program, args).status === 0
export const hasNginx = runs('nginx', '-v')
export const hasCaddy = runs('caddy', 'version')

/** A folder with a certificate for HOST that is its own authority. */
export function makeCertificate() {
  const folder = mkdtempSync(join(tmpdir(), 'petstore-tls-'))
  const [cert, key] = [join(folder, 'cert.pem'), join(folder, 'key.pem')]
  const names = ['-subj', `/CN=${HOST}`, '-addext', `subjectAltName=DNS:${HOST}`]
  const args = ['req', '-x509', '-nodes', '-newkey', 'rsa:2048', '-days', '1', '-keyout', key, '-out', cert, ...names]
  execFileSync('openssl', args, { stdio: 'ignore' })
  return { folder, cert, key, ca: readFileSync(cert), remove: () => rmSync(folder, { recursive: true, force: true }) }
}

/** An example with changes, each of which must find its text. */
function changed(name: string, changes: [string, string][]): string {
  let text = readFileSync(`docs/one-machine/${name}`, 'utf8')
  for (const [from, to] of changes) {
    if (!text.includes(from)) throw new Error(`docs/one-machine/${name} has no ${from}`)
    text = text.replaceAll(from, to)
  }
  return text
}

export interface TlsProxy {
  port: number
  /** Where it listens without TLS. */
  plainPort: number
  close(): Promise<void>
}

type Certificate = ReturnType<typeof makeCertificate>

const configurations = {
  nginx({ folder, cert, key }: Certificate, gateway: string, port: number, plainPort: number) {
    const site = changed('nginx.conf', [
      ['server 127.0.0.1:3000;', `server ${gateway};`],
      ['listen 80;', `listen 127.0.0.1:${plainPort};`],
      ['listen 443 ssl', `listen 127.0.0.1:${port} ssl`],
      [`/etc/letsencrypt/live/${HOST}/fullchain.pem`, cert],
      [`/etc/letsencrypt/live/${HOST}/privkey.pem`, key],
    ])
    const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
      (of) => `${of}_temp_path ${folder}/${of};`,
    )
    const user = process.getuid?.() === 0 ? 'user root;' : ''
    const head = `${user} daemon off; worker_processes 1; pid ${folder}/pid; error_log stderr; events {}`
    const file = join(folder, 'nginx.conf')
    writeFileSync(file, `${head}\nhttp { access_log off; ${temporary.join(' ')}\n${site}}\n`)
    return ['-c', file, '-e', 'stderr']
  },
  caddy({ folder, cert, key }: Certificate, gateway: string, port: number, _plainPort: number) {
    const site = changed('Caddyfile', [
      [`${HOST} {`, `https://${HOST}:${port} {\n\tbind 127.0.0.1\n\ttls ${cert} ${key}`],
      ['127.0.0.1:3000', gateway],
    ])
    const file = join(folder, 'Caddyfile')
    writeFileSync(file, `{\n\tadmin off\n\tauto_https off\n\tstorage file_system ${folder}/caddy\n}\n${site}`)
    return ['run', '--adapter', 'caddyfile', '--config', file]
  },
}

/** Starts a proxy before a gateway, given as host and port. */
export async function startTlsProxy(name: keyof typeof configurations, certificate: Certificate, gateway: string) {
  const [port, plainPort] = [await freePort(), await freePort()]
  const args = configurations[name](certificate, gateway, port, plainPort)
  const { PATH } = process.env
  const env = { PATH, HOME: certificate.folder }
  const child = spawn(name, args, { env, stdio: ['ignore', 'ignore', 'pipe'] })
  let log = ''
  child.stderr.on('data', (data) => {
    log += data
  })
  while (!(await isListening(port))) {
    if (child.exitCode !== null) throw new Error(`${name} did not start:\n${log}`)
    await sleep(20)
  }
  return {
    port,
    plainPort,
    async close() {
      if (child.exitCode !== null) return
      child.kill('SIGTERM')
      await once(child, 'exit')
    },
  } satisfies TlsProxy
}
