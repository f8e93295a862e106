import { once } from 'node:events'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import type { Page } from 'playwright-core'
import { atEnd, Refusal, runProgram } from '../lab/bench/lifecycle.js'
import { startProcess } from '../lab/bench/processes.js'
import { chromiumPath } from '../support/chromium.js'
import { freePort } from '../support/ports.js'
import { launch } from './browser.js'

// npm run screenshots [-- FOLDER]: takes the pictures of the README and the docs (default folder: docs/images). It starts
// its own gateway with sample data in a temporary folder, and needs Chromium.

/** Pictures are shown in pages, so none may be large. */
const MAX_BYTES = 150_000
const [, , folder = 'docs/images'] = process.argv
const base = 'http://petstore.test'
const [port, databasePort, studioPort] = [await freePort(), await freePort(), await freePort()]
const dataDir = await mkdtemp(join(tmpdir(), 'petstore-screenshots-'))
const env = {
  DATA_DIR: dataDir,
  BASE_URL: base,
  HOST: '127.0.0.1',
  PORT: String(port),
  EMBEDDED_DB_PORT: String(databasePort),
  LOG_LEVEL: 'warn',
}

/** Starts a program of the build. Returns its standard output once it matches, or once the program has ended. */
async function run(program: string, args: string[], until?: RegExp) {
  const child = startProcess(process.execPath, [`dist/src/${program}.js`, ...args], env)
  let output = ''
  let errors = ''
  const ready = new Promise<void>((resolve) => {
    child.stdout?.setEncoding('utf8').on('data', (text) => {
      output += text
      if (until?.test(output)) resolve()
    })
  })
  child.stderr?.setEncoding('utf8').on('data', (text) => {
    errors += text
  })
  const ended = once(child, 'close').then(([code]) => {
    if (until || code !== 0) throw new Refusal(`${program} ended with ${code}:\n${errors}${output}`)
  })
  await Promise.race([ready, ended])
  // The end of the run ends what still runs: by a signal that Studio passes on to the process that it has started.
  const over = ended.catch(() => {})
  atEnd(() => child.kill('SIGTERM') && over)
  return output.trimEnd()
}

interface Picture {
  width: number
  height: number
  take(page: Page): Promise<unknown>
}

const escaped = (text: string) => text.replace(/[&<>]/g, (character) => `&#${character.charCodeAt(0)};`)

/** A terminal with a command and what it printed. */
const terminal = (command: string, output: string) => `<!doctype html><meta charset="utf-8"><style>
  html { background: #0f1720; color: #d7e0ea; font: 14px/1.5 "DejaVu Sans Mono", Menlo, Consolas, monospace }
  pre { margin: 0; padding: 20px 24px; width: max-content; font: inherit }
  b { color: #7dd3a8; font-weight: normal }
</style><pre><b>$</b> ${escaped(command)}\n${escaped(output)}</pre>`

let key = ''

const pictures: Record<string, Picture> = {
  reference: {
    width: 1440,
    height: 900,
    take: (page) => page.goto(`${base}/docs`),
  },
  operation: {
    width: 1440,
    height: 900,
    async take(page) {
      await page.goto(`${base}/docs`)
      await page.locator('header .key').click()
      await page.getByLabel('API key', { exact: true }).fill(key)
      await page.getByRole('button', { name: 'Use key' }).click()
      await page.getByRole('button', { name: 'Remove key' }).waitFor()
      await page.keyboard.press('Escape')
      await page.goto(`${base}/docs#operation-createPet`)
      const operation = page.locator('#operation-createPet')
      await operation.getByText('Try it').click()
      await operation.getByRole('button', { name: 'Send POST' }).click()
      await operation.locator('.result').waitFor()
      await operation.evaluate((element) => element.scrollIntoView())
    },
  },
  graphiql: {
    width: 1280,
    height: 760,
    async take(page) {
      // The page takes the key that the reference keeps, or the one in this header.
      await page.route('**/graphql', (route, request) =>
        request.method() === 'POST'
          ? route.continue({ headers: { ...request.headers(), authorization: `Bearer ${key}` } })
          : route.continue(),
      )
      await page.goto(`${base}/graphql`)
      await page.locator('.graphiql-query-editor').click({ position: { x: 200, y: 120 } })
      await page.keyboard.press('ControlOrMeta+Enter')
      await page.locator('.graphiql-response').getByText('"Rex"').waitFor()
    },
  },
  studio: {
    width: 1280,
    height: 620,
    async take(page) {
      await run('admin/studio', ['--port', String(studioPort), '--browser', 'none'], /running at/)
      await page.goto(`http://localhost:${studioPort}`)
      await page.getByText('Pet', { exact: true }).first().click()
      await page.getByText('Bubbles').first().waitFor()
    },
  },
  usage: {
    width: 1100,
    height: 980,
    async take(page) {
      await page.addInitScript((text) => localStorage.setItem('petstore-key', text), key)
      await page.goto(`${base}/usage`)
      await page.locator('#plot svg').waitFor()
    },
  },
  'keys-usage': {
    width: 1280,
    height: 400,
    async take(page) {
      const command = ['usage', '--days', '30']
      await page.setContent(terminal(`npm run keys -- ${command.join(' ')}`, await run('admin/keys', command)))
      const { width, height } = (await page.locator('pre').boundingBox()) ?? { width: 800, height: 300 }
      await page.setViewportSize({ width: Math.ceil(width), height: Math.ceil(height) })
    },
  },
}

/** A month of usage of each key. Numbers look random, but are the same each time. */
async function addUsage() {
  const client = new pg.Client(`postgresql://postgres@127.0.0.1:${databasePort}/postgres`)
  await client.connect()
  await client.query(`
    INSERT INTO "ApiKeyUsage" ("keyId", "name", "day", "requests", "refusals", "cost")
    SELECT "id", "name", (now() AT TIME ZONE 'UTC')::date - ago, requests, requests / 40, requests * 5 / 4
    FROM "ApiKey", generate_series(1, 29) AS ago,
      LATERAL (SELECT "id" * "id" * (40 + (ago * (7 + "id")) % 13 * 60 + (29 - ago) * 15) AS requests) AS day
    ON CONFLICT DO NOTHING`)
  await client.end()
}

await runProgram(async () => {
  atEnd(() => rm(dataDir, { recursive: true, force: true, maxRetries: 5 }))
  if (!chromiumPath) throw new Refusal('There is no Chromium on PATH. Install it, or set CHROMIUM_PATH.')
  await run('main', [], /^curl /m)
  const keys = JSON.parse(await readFile(join(dataDir, 'demo-keys.json'), 'utf8'))
  key = keys.Pro
  await addUsage()
  await mkdir(folder, { recursive: true })
  const browser = await launch(port)
  atEnd(() => browser.close())
  const context = await browser.newContext({ deviceScaleFactor: 1.5, colorScheme: 'light' })
  context.setDefaultTimeout(30_000)
  for (const [name, { width, height, take }] of Object.entries(pictures)) {
    const page = await context.newPage()
    await page.setViewportSize({ width, height })
    try {
      await take(page)
      await page.waitForLoadState('networkidle')
      // Transitions have ended then.
      await page.waitForTimeout(500)
      const session = await page.context().newCDPSession(page)
      // Playwright itself does not write WebP, which needs a third of what a PNG does.
      const { data } = await session.send('Page.captureScreenshot', { format: 'webp', quality: 90 })
      const bytes = Buffer.from(data, 'base64')
      if (bytes.length > MAX_BYTES) throw new Error(`The picture has ${bytes.length} bytes; at most ${MAX_BYTES}.`)
      const path = join(folder, `${name}.webp`)
      await writeFile(path, bytes)
      console.log(`${path}: ${Math.round(bytes.length / 1000)} KB`)
    } catch (error) {
      // The other pictures do not depend on this one.
      console.error(`${name}: ${(error as Error).message}`)
      process.exitCode = 1
    }
    await page.close()
  }
  // Before Studio, which waits for its connections.
  await browser.close()
})
