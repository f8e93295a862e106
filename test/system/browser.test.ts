import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { seed } from '../../prisma/seed.js'
import { emptyStore } from '../support/calls.js'
import { chromiumPath } from '../support/chromium.js'
import { type Gateway, openGateway, useGateway } from '../support/gateway.js'
import { barriers, collectProblems, launch } from './browser.js'

const host = 'petstore.test'
const baseUrl = `http://${host}/v1`

interface Api {
  info: { description: string }
  paths: Record<string, Record<string, Operation>>
  components: { schemas: Record<string, Schema>; headers: object }
}

interface Schema {
  properties?: Record<string, Schema>
  'x-extensible-enum'?: string[]
}

interface Operation {
  operationId: string
  summary: string
  tags: string[]
  deprecated?: true
  'x-stability'?: string
  'x-no-try-it-reason'?: string
  parameters?: { name: string }[]
  responses: Record<string, unknown>
  'x-codeSamples': { label: string; source: string }[]
}

// Needs Chromium: CHROMIUM_PATH, or chromium or google-chrome on PATH.
const inChromium = describe.skipIf(!chromiumPath)

let gateway: Gateway
let browser: Browser
beforeAll(async () => {
  if (!chromiumPath) return
  gateway = await openGateway({ env: { BASE_URL: baseUrl, PET_BY_ID_SUNSET: '2031-02-03' } })
  browser = await launch((await gateway.listen()).port)
})
afterAll(async () => {
  await browser?.close()
  await gateway?.close()
})

async function sampleData() {
  await emptyStore(gateway.prisma)
  await seed(gateway.prisma)
}

inChromium('the reference', () => {
  let page: Page
  let problems: string[]
  let api: Api
  let guides: string

  const operation = (id: string) => page.locator(`#operation-${id}`)
  const visit = (address = '') => page.goto(`${baseUrl}/docs${address}`)
  /** Opens a page of its own, with a problem for each error that it logs. */
  const open = async (options: Parameters<Browser['newPage']>[0] = {}) => {
    const opened = await browser.newPage({ viewport: { width: 1440, height: 900 }, colorScheme: 'light', ...options })
    opened.setDefaultTimeout(60_000)
    return opened
  }

  beforeAll(async () => {
    await sampleData()
    api = (await gateway.get('/openapi.json')).body
    guides = (await gateway.get('/docs/guides.md')).text
    page = await open()
    problems = collectProblems(page, host)
    await visit()
  })

  const operations = () =>
    Object.entries(api.paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, found]) => ({ ...found, title: `${method.toUpperCase()} ${path}` })),
    )
  const codes = () => api.components.schemas.Error?.properties?.code?.['x-extensible-enum'] ?? []

  const usesKey = async (key: string, on = page) => {
    await on.locator('header .key').click()
    await on.getByLabel('API key', { exact: true }).fill(key)
    await on.getByRole('button', { name: 'Use key' }).click()
  }
  const removesKey = async (on = page) => {
    await on.getByRole('button', { name: 'Remove key' }).click()
    await on.keyboard.press('Escape')
  }
  const keyMessage = () => page.locator('#key-message')

  describe('its first screen', () => {
    const top = (on: Page) => on.locator('#top')
    /** What a reader needs first. */
    const needed = (on: Page) => [
      top(on).getByRole('heading', { level: 1 }),
      top(on).getByText('Authenticate'),
      top(on).getByText('Get a key'),
      top(on).getByRole('button', { name: 'add your key' }),
      top(on).locator('pre', { hasText: `curl -i '${baseUrl}/pets?limit=2'` }),
      top(on).locator('pre', { hasText: 'HTTP/1.1 200 OK' }),
    ]
    const end = async (part: ReturnType<Page['locator']>) => {
      const { y, height } = (await part.boundingBox()) ?? { y: Number.NaN, height: 0 }
      return y + height
    }

    test.each(['light', 'dark'] as const)(
      'says what it is, how to authenticate, where to get a key, and has a request with its answer: %s',
      async (colorScheme) => {
        const on = await open({ colorScheme })
        await on.goto(`${baseUrl}/docs`)
        for (const part of needed(on)) expect(await end(part)).toBeLessThan(900)
        for (const name of ['Authentication', 'Short answers'])
          expect(await end(top(on).getByRole('link', { name })), name).toBeLessThan(900)
        await on.close()
      },
    )

    test('on a phone has the text, then the request and its answer, then the guides', async () => {
      const on = await open({ viewport: { width: 375, height: 800 }, hasTouch: true, isMobile: true })
      await on.goto(`${baseUrl}/docs`)
      const ends = await Promise.all([...needed(on), top(on).getByRole('link', { name: 'Authentication' })].map(end))
      expect(ends).toEqual([...ends].sort((a, b) => a - b))
      await on.close()
    })

    test('leads to where a key is entered', async () => {
      await visit()
      await top(page).getByRole('button', { name: 'add your key' }).click()
      expect(await page.getByLabel('API key', { exact: true }).isVisible()).toBe(true)
      await page.keyboard.press('Escape')
    })
  })

  describe('its navigation', () => {
    const navigation = () => page.getByRole('navigation', { name: 'Reference' })

    test('has the operations by resource, then guides in groups, then headers and schemas', async () => {
      expect(await navigation().getByRole('heading').allTextContents()).toEqual([
        ...['Pets', 'Categories', 'Pets'],
        ...['Store', 'Orders', 'Inventory', 'Quota'],
        ...['Guides', 'Keys and limits', 'Requests', 'Running a shop', 'Clients', 'Questions'],
        'Headers and schemas',
      ])
      const linked = await navigation()
        .getByRole('link')
        .evaluateAll((links) => links.map((link) => link.getAttribute('href')))
      expect(linked).toEqual(expect.arrayContaining(operations().map(({ operationId }) => `#operation-${operationId}`)))
      expect(linked).toEqual(
        expect.arrayContaining(Object.keys(api.components.schemas).map((name) => `#schema-${name}`)),
      )
      expect(linked.indexOf('#operation-listPets')).toBeLessThan(linked.indexOf('#authentication'))
      const titles = [...guides.matchAll(/^## (.+)$/gm)].map(([, title]) => title)
      const groups = navigation().locator('section', { has: page.getByRole('heading', { name: 'Guides' }) })
      expect(await groups.getByRole('link').allTextContents()).toEqual(titles)
    })

    test('marks what is deprecated, experimental and beta, and so does each operation', async () => {
      for (const { operationId, deprecated, 'x-stability': stability } of operations()) {
        const marks = deprecated ? ['deprecated'] : stability ? [stability] : []
        const link = navigation().locator(`a[href="#operation-${operationId}"]`)
        expect(await link.locator('.mark').allTextContents()).toEqual(marks)
        expect(await operation(operationId).locator('h4 .mark').allTextContents()).toEqual(marks)
      }
    })

    test('shows where the reader is', async () => {
      for (const id of ['bans', 'operation-createPet', 'schema-Pet']) {
        await page.evaluate((to) => document.getElementById(to)?.scrollIntoView(), id)
        const current = navigation().locator('[aria-current]')
        await expect.poll(() => current.getAttribute('href')).toBe(`#${id}`)
        const { y = -1 } = (await current.boundingBox()) ?? {}
        expect(y).toBeGreaterThan(50)
        expect(y).toBeLessThan(900)
      }
    })
  })

  describe('its links', () => {
    /** Where the target of the address is, in the window. */
    const landed = async (id: string, on = page) =>
      on.evaluate((name) => {
        const { scrollY, innerHeight } = window
        const end = scrollY + innerHeight >= document.documentElement.scrollHeight - 2
        return { top: document.getElementById(name)?.getBoundingClientRect().top ?? -1, end }
      }, id)

    test('land below the bar, wherever they lead', async () => {
      const ids = await page
        .locator('a[href^="#"]')
        .evaluateAll((links) => [
          ...new Set(links.map((link) => decodeURIComponent(link.getAttribute('href')?.slice(1) ?? ''))),
        ])
      expect(ids.length).toBeGreaterThan(60)
      const places = await page.evaluate((names) => {
        return names.map((name) => {
          location.hash = `#${encodeURIComponent(name)}`
          document.getElementById(name)?.scrollIntoView()
          const { scrollY, innerHeight } = window
          const end = scrollY + innerHeight >= document.documentElement.scrollHeight - 2
          return { name, top: document.getElementById(name)?.getBoundingClientRect().top ?? Number.NaN, end }
        })
      }, ids)
      for (const { name, top, end } of places) {
        // A section has space above its heading, which is below the bar.
        expect(top, name).toBeGreaterThanOrEqual(name === 'content' ? 0 : 35)
        if (!end) expect(top, name).toBeLessThan(130)
      }
    })

    test.each([
      ['operation-updateInventory', 1440],
      ['schema-Order.shipDate', 1440],
      ['error-key_banned', 375],
    ])('land on #%s on first load as well, at %i pixels', async (id, width) => {
      const fresh = await open({ viewport: { width, height: 900 } })
      await fresh.goto(`${baseUrl}/docs#${id}`)
      const { top } = await landed(id, fresh)
      expect(top).toBeGreaterThanOrEqual(35)
      expect(top).toBeLessThan(130)
      await fresh.close()
    })

    test('that name an operationId, as logs and clients show it, land on the operation', async () => {
      const seen = async (on: Page, operationId: string) => {
        await expect.poll(() => new URL(on.url()).hash).toBe(`#operation-${operationId}`)
        await expect.poll(async () => (await landed(`operation-${operationId}`, on)).top).toBeLessThan(130)
        expect(await on.getByRole('alert').isHidden()).toBe(true)
      }
      for (const { operationId } of operations().slice(0, 5)) {
        await visit('#bans')
        await visit(`#${operationId}`)
        await seen(page, operationId)
      }
      const fresh = await open()
      await fresh.goto(`${baseUrl}/docs#listPets`)
      await seen(fresh, 'listPets')
      await fresh.close()
    })

    test('that name nothing land on the top, with a message that offers a search', async () => {
      for (const [address, name] of [
        ['#quotas', 'quotas'],
        ['#%E0%A4%A', '%E0%A4%A'],
        ['#%3Cimg%20src=x%3E', '<img src=x>'],
      ]) {
        await visit('#bans')
        await visit(address)
        const message = page.getByRole('alert')
        await expect.poll(() => message.textContent()).toContain(`There is no section “${name}” on this page.`)
        expect(await page.evaluate(() => scrollY)).toBe(0)
      }
      await visit('#quotas')
      await page.getByRole('alert').getByRole('button', { name: 'Search' }).click()
      expect(await page.getByRole('combobox').inputValue()).toBe('quotas')
      await page.keyboard.press('Escape')
      await visit('#bans')
      await expect.poll(() => page.getByRole('alert').isHidden()).toBe(true)
    })
  })

  describe('its search', () => {
    const titles = (query: string) =>
      page.evaluate((text) => {
        const field = document.querySelector<HTMLInputElement>('#search-text')
        if (!field) return []
        field.value = text
        field.dispatchEvent(new Event('input'))
        return [...document.querySelectorAll('#search-results a')].map((link) =>
          decodeURIComponent(link.getAttribute('href')?.slice(1) ?? ''),
        )
      }, query)

    test('finds every operation, by its title, its path and its name', async () => {
      for (const { operationId, summary, title } of operations())
        for (const query of [summary, title, operationId])
          expect((await titles(query)).slice(0, 8), query).toContain(`operation-${operationId}`)
    })

    test('finds every field of every schema, every parameter and every header', async () => {
      for (const [name, { properties = {} }] of Object.entries(api.components.schemas)) {
        expect((await titles(name))[0]).toBe(`schema-${name}`)
        for (const field of Object.keys(properties)) {
          expect((await titles(`${name}.${field}`))[0]).toBe(`schema-${name}.${field}`)
          expect(await titles(field), field).toEqual(
            expect.arrayContaining([expect.stringMatching(new RegExp(`\\.${field}$`))]),
          )
        }
      }
      for (const { operationId, parameters = [] } of operations())
        for (const { name } of parameters)
          expect(await titles(`${name} ${operationId}`)).toContain(`${operationId}.${name}`)
      for (const name of Object.keys(api.components.headers)) expect((await titles(name))[0]).toBe(`header-${name}`)
    })

    test('finds every error code', async () => {
      expect(codes().length).toBeGreaterThan(12)
      for (const code of codes()) expect((await titles(code))[0]).toBe(`error-${code}`)
    })

    test('finds every heading of every guide, and words of its text', async () => {
      const headings = [...guides.matchAll(/^##+ (.+)$/gm)].map(([, heading]) => heading ?? '')
      expect(headings.length).toBeGreaterThan(10)
      for (const heading of headings) {
        const texts = await titles(heading).then(() => page.locator('#search-results .title').allTextContents())
        expect(texts.slice(0, 3)).toContain(heading)
      }
      expect(await titles('jitter')).toContain('backing-off')
    })

    const [batches, lists] = ['batches-import-and-export', 'lists-filters-order-paging-totals']
    test.each([
      ['short-answers-which-languages-can-i-use', 'python, TypeScript, sdk, swagger, openapi, Postman'],
      ['short-answers-can-a-web-page-call-the-api', 'cors, browser'],
      ['short-answers-are-there-webhooks', 'webhook, Webhooks, events, polling, subscription'],
      ['short-answers-how-much-have-i-used', 'usage, billing'],
      ['short-answers-is-there-a-user-interface', 'studio, prisma studio, graphiql'],
      ['authentication', 'key, api key, token, bearer, login, 401, rotate key, key rotation'],
      ['limits-by-plan', 'rate limit, limit, quota, plan, pricing'],
      ['backing-off', '429, too many requests, throttling'],
      ['bans', 'ban, banned'],
      ['errors', 'error, error codes, 404'],
      [`${lists}-pages`, 'pagination, paging, cursor, offset, next page'],
      [`${lists}-filters-and-order`, 'filter, sort, order by, where, search'],
      [`${lists}-totals`, 'total, count'],
      ['caching-and-lost-updates', 'etag, cache, 304'],
      ['versions-and-deprecation', 'version, versioning, breaking change'],
      ['rest-and-graphql', 'graphql'],
      ['rest-and-graphql-what-a-document-costs', 'cost, complexity'],
      ['safe-retries', 'retry, retries, idempotency, idempotent, timeout'],
      ['graphql-clients-apollo-client', 'apollo'],
      ['admin-interfaces', 'admin, dashboard'],
      ['top', 'get started, quick start, get a key, base url'],
      ['selling', 'selling, oversell, overselling, sell without overselling'],
      [batches, 'batch, bulk'],
      [`${batches}-how-to-delete-many`, 'bulk delete, delete many'],
      [`${batches}-import-and-export-csv-files`, 'import, export, csv, excel, stock-take'],
      [`${batches}-several-mutations-all-or-none`, 'transaction, atomic'],
      ['operation-deleteCategory', 'delete'],
      ['operation-deletePet', 'delete pet'],
      ['operation-listUsage', 'GET /quota/usage'],
      ['schema-Key', 'Key'],
    ])('finds %s first for: %s', async (id, queries) => {
      for (const query of queries.split(', ')) expect((await titles(query))[0], query).toBe(id)
    })

    test('shows no words that are only there for it', async () => {
      expect(await page.locator('main').textContent()).not.toMatch(/<!--|prisma studio, /)
    })

    test('says when nothing matches', async () => {
      expect(await titles('zebra')).toEqual([])
      expect(await page.locator('#search-state').textContent()).toBe('Nothing on this page matches “zebra”.')
    })

    test.each(['/', 'Control+k'])('opens with %s, and Enter leads to the chosen result', async (keys) => {
      await visit()
      await page.keyboard.press(keys)
      await page.getByRole('combobox').waitFor()
      await page.keyboard.type('stock')
      const options = page.getByRole('dialog').getByRole('option')
      await page.keyboard.press('ArrowDown')
      expect(await options.nth(1).getAttribute('aria-selected')).toBe('true')
      const target = (await options.nth(1).getAttribute('href')) ?? ''
      await page.keyboard.press('Enter')
      await expect.poll(() => new URL(page.url()).hash).toBe(target)
      expect(await page.getByRole('dialog').isVisible()).toBe(false)
    })

    test('opens only with Control+K while the reader types', async () => {
      await visit('#operation-createPet')
      await operation('createPet').getByText('Try it').click()
      await operation('createPet').getByLabel('Body').focus()
      await page.keyboard.press('/')
      expect(await page.getByRole('dialog').isVisible()).toBe(false)
      await page.keyboard.press('Control+k')
      expect(await page.getByRole('dialog').isVisible()).toBe(true)
      await page.keyboard.press('Escape')
    })
  })

  test.each([1280, 1440, 1920])(
    'its guides stand in their order, with code beside the text, at %i pixels',
    async (width) => {
      const on = await open({ viewport: { width, height: 900 } })
      await on.goto(`${baseUrl}/docs`)
      const overlaps = await on.evaluate(() => {
        const edges = (one: Element) => one.getBoundingClientRect()
        const below = (blocks: Element[]) =>
          blocks.flatMap((block, index) => {
            const before = blocks[index - 1]
            return before && edges(before).bottom > edges(block).top + 1 ? [block.textContent?.slice(0, 60)] : []
          })
        const guides = [...document.querySelectorAll('.guide')]
        return guides.flatMap((guide) => [
          ...below([...guide.querySelectorAll(':scope > :is(h4, h5), :scope > .row > .text')]),
          ...below([...guide.querySelectorAll('.aside .code')]),
          ...[...guide.querySelectorAll('.row')].filter((row) => {
            const [text, aside] = [row.querySelector('.text'), row.querySelector('.aside')]
            return (
              text &&
              aside &&
              (edges(aside).left < edges(text).right || Math.abs(edges(aside).top - edges(text).top) > 1)
            )
          }),
        ])
      })
      expect(overlaps).toEqual([])
      await on.close()
    },
  )

  describe('its samples', () => {
    test('are in curl, JavaScript and Python, and the chosen language holds for all, also after a reload', async () => {
      await visit('#operation-listPets')
      for (const language of ['Python', 'JavaScript', 'curl']) {
        await operation('listPets').getByRole('button', { name: language }).click()
        await page.reload()
        for (const { operationId, 'x-codeSamples': samples } of operations().slice(0, 5)) {
          const visible = operation(operationId).locator('.panel:visible pre')
          expect(await visible.allTextContents()).toEqual(
            samples.flatMap(({ label, source }) => (label === language ? [source] : [])),
          )
          const button = operation(operationId).getByRole('button', { name: language })
          expect(await button.getAttribute('aria-pressed')).toBe('true')
        }
      }
    })

    test('have a button that copies them, and says so', async () => {
      await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
      const block = operation('listPets').locator('.panel:visible .code')
      await block.hover()
      const button = block.getByRole('button', { name: 'Copy' })
      await button.click()
      await expect.poll(() => block.getByRole('status').textContent()).toBe('Copied')
      await page.keyboard.press('Control+k')
      await page.getByRole('combobox').press('ControlOrMeta+v')
      expect(await page.getByRole('combobox').inputValue()).toContain('curl --fail-with-body')
      await page.keyboard.press('Escape')
    })

    test('are highlighted, in guides as well', async () => {
      expect(await page.locator('#backing-off .hljs-keyword').count()).toBeGreaterThan(5)
      expect(await page.locator('#rate-limit-headers .hljs-attribute').count()).toBeGreaterThan(3)
      expect(await operation('createPet').locator('.hljs-string').count()).toBeGreaterThan(5)
    })
  })

  describe.each([
    ['a desktop', { viewport: { width: 1440, height: 900 } }],
    ['a tablet', { viewport: { width: 1024, height: 800 }, hasTouch: true }],
    ['a phone', { viewport: { width: 375, height: 800 }, hasTouch: true, isMobile: true }],
  ])('its code blocks on %s', (_, options) => {
    test('break no word such as -H or Retry-After, and their buttons cover no character of them', async () => {
      const on = await open(options)
      await on.goto(`${baseUrl}/docs`)
      // One that the script of the page makes.
      const form = on.locator('#operation-createPet .try')
      await form.getByText('Try it').click()
      await form.getByLabel('Idempotency-Key').fill('a-key-with-hyphens')
      await form.getByRole('button', { name: 'Send POST' }).click()
      await form.locator('.answer .code').first().waitFor()
      const found = await on.evaluate(() => {
        /** Where the words of a text are that match a pattern: a box for each line. */
        const boxesOf = (pre: Element, pattern: RegExp) => {
          const walker = document.createTreeWalker(pre, NodeFilter.SHOW_TEXT)
          const nodes: Text[] = []
          while (walker.nextNode()) nodes.push(walker.currentNode as Text)
          const place = (offset: number): [Text, number] => {
            let rest = offset
            for (const node of nodes) {
              if (rest <= node.length) return [node, rest]
              rest -= node.length
            }
            throw new Error('beyond the end')
          }
          return Array.from((pre.textContent ?? '').matchAll(pattern), ({ 0: word, index }) => {
            const range = document.createRange()
            range.setStart(...place(index))
            range.setEnd(...place(index + word.length))
            // A range that begins at the end of a node has an empty box there.
            return { word, boxes: [...range.getClientRects()].filter(({ width }) => width > 0) }
          })
        }
        const shown = [...document.querySelectorAll('.code:has(.copy) > pre')].filter(
          (pre) => pre.getClientRects().length > 0,
        )
        const broken = shown.flatMap((pre) =>
          boxesOf(pre, /[\w-]*-[\w-]+/g).flatMap(({ word, boxes }) =>
            word.length <= 30 && new Set(boxes.map(({ top }) => Math.round(top))).size > 1 ? word : [],
          ),
        )
        const covered = shown.flatMap((pre) => {
          const button = pre.parentElement?.querySelector('.copy') as HTMLElement
          return ['Copy', 'Copied', 'Failed'].flatMap((label) => {
            button.textContent = label
            const { left, right, top, bottom } = button.getBoundingClientRect()
            return boxesOf(pre, /\S+/g).flatMap(({ word, boxes }) =>
              boxes.some((box) => box.right > left && box.left < right && box.bottom > top && box.top < bottom)
                ? `${word} by ${label}`
                : [],
            )
          })
        })
        return { broken, covered, many: shown.length > 100, wide: document.documentElement.scrollWidth > innerWidth }
      })
      expect(found).toEqual({ broken: [], covered: [], many: true, wide: false })
      await on.close()
    })
  })

  test('shows one example of an error, and folds the others', async () => {
    for (const { operationId } of operations()) {
      const examples = operation(operationId).locator('.aside > details:not(.try)')
      expect(await examples.count()).toBeGreaterThan(3)
      expect(await examples.evaluateAll((all) => all.map((one) => (one as HTMLDetailsElement).open))).toEqual([
        true,
        ...Array(-1 + (await examples.count())).fill(false),
      ])
    }
  })

  test('shows the sunset of the deprecated operation, and links its successor', async () => {
    expect(await operation('getPet').locator('.note').textContent()).toContain('it ends on 2031-02-03')
    const successor = operation('getPet').getByRole('link', { name: 'GET /pets?id={petId}' })
    expect(await successor.getAttribute('href')).toBe('#operation-listPets')
  })

  test('every operation can be tried except GET /store/orders, which gives the reason', async () => {
    for (const { operationId, 'x-no-try-it-reason': reason } of operations()) {
      const found = operation(operationId)
      expect(await found.locator('form').count()).toBe(reason ? 0 : 1)
      if (!reason) continue
      expect(operationId).toBe('listOrders')
      expect(await found.getByRole('button', { name: 'Try it' }).isDisabled()).toBe(true)
      expect(await found.locator('.no-try p').textContent()).toBe(reason)
    }
  })

  describe('the key', () => {
    test('is checked when it is entered: its plan and what is left are shown, and not the key', async () => {
      const { key } = await gateway.createKey({ plan: 'Pro' })
      await visit()
      const sent = page.waitForRequest(`${baseUrl}/quota`)
      await usesKey(key)
      expect((await sent).headers().authorization).toBe(`Bearer ${key}`)
      await page.locator('#key-quota').getByText('Pro plan').waitFor()
      expect(await page.getByRole('meter').evaluateAll((all) => all.map((one) => one.ariaLabel))).toEqual([
        '300 of 300 left this minute',
        '10,000 of 10,000 left this day',
      ])
      expect(await page.content()).not.toContain(key)
      expect(await page.getByLabel('API key', { exact: true }).inputValue()).toBe('')
      // It stays in this browser, until it is removed.
      await page.reload()
      await expect.poll(() => page.locator('header .key').textContent()).toBe('Pro · 300 left')
      await page.locator('header .key').click()
      await removesKey()
      expect(await page.locator('header .key').textContent()).toBe('API key')
      await page.reload()
      expect(await page.locator('header .key').textContent()).toBe('API key')
    })

    test('gets a clear message where it was entered if it is wrong, revoked or no key at all', async () => {
      const revoked = await gateway.createKey({ revokedAt: new Date(0) })
      const notValid = 'This key is not valid. It may be mistyped, revoked or expired.'
      await visit()
      for (const [key, message] of [
        ['', 'Paste a key first.'],
        ['schlüssel', 'a key starts with petstore_'],
        ['petstore_with spaces', 'has no spaces'],
        ['petstore_wrong', notValid],
        [revoked.key, notValid],
      ] as const) {
        await usesKey(key)
        await expect.poll(() => keyMessage().textContent()).toContain(message)
        expect(await keyMessage().isVisible()).toBe(true)
        expect(await page.getByRole('meter').count()).toBe(0)
        expect(await page.locator('header .key').textContent()).toBe('API key')
        await page.keyboard.press('Escape')
      }
      await page.reload()
      expect(await page.locator('header .key').textContent()).toBe('API key')
      // Chromium logs every 401.
      expect(problems.splice(0)).toEqual([expect.stringContaining('401'), expect.stringContaining('401')])
    })

    test('that was revoked after it was entered gets a message too', async () => {
      await visit()
      await page.evaluate(() => localStorage.setItem('petstore-key', 'petstore_revoked'))
      await page.reload()
      await expect.poll(() => page.locator('header .key').textContent()).toBe('Check key')
      await page.locator('header .key').click()
      await expect.poll(() => keyMessage().textContent()).toContain('This key is not valid.')
      await removesKey()
      problems.splice(0)
    })

    test('that cannot be checked gets a message that says so', async () => {
      await page.route(`${baseUrl}/quota`, (route) => route.abort())
      await visit()
      await usesKey(gateway.key)
      await expect.poll(() => keyMessage().textContent()).toContain('could not be checked')
      await page.unroute(`${baseUrl}/quota`)
      problems.splice(0)
    })
  })

  describe('trying', () => {
    const send = async (id: string) => {
      // Neither the quota nor what the page itself may still load.
      const answered = page.waitForResponse(
        (response) => 'authorization' in response.request().headers() && response.url() !== `${baseUrl}/quota`,
      )
      await operation(id).getByRole('button', { name: /^Send/ }).click()
      const response = await answered
      await operation(id).locator('.result').waitFor()
      return response
    }

    beforeAll(async () => {
      await visit()
      await usesKey(gateway.key)
      await page.getByRole('meter').first().waitFor()
      await page.keyboard.press('Escape')
    })
    afterAll(async () => {
      await page.locator('header .key').click()
      await removesKey()
    })

    test('shows status, time, headers, body and the curl line of what was sent, without the key', async () => {
      await visit('#operation-updateInventory')
      const tried = operation('updateInventory')
      await tried.getByText('Try it').click()
      await tried.getByLabel('petId').fill('2')
      await tried.getByLabel('Body').fill('{"quantity": 7}')
      const response = await send('updateInventory')
      expect(response.request().headers()).toMatchObject({ authorization: `Bearer ${gateway.key}` })
      const answer = tried.locator('.answer')
      expect(await tried.locator('.result').textContent()).toMatch(/^200 OK in \d+ ms$/)
      const [body, headers, curl] = await answer.locator('pre').allTextContents()
      expect(JSON.parse(body ?? '')).toMatchObject({ petId: 2, quantity: 7 })
      expect(headers).toContain('x-ratelimit-remaining: ')
      expect(curl).toBe(
        [
          `curl -i -X PATCH '${baseUrl}/inventory/2'`,
          '-H "Authorization: Bearer $PETSTORE_KEY"',
          "-H 'Content-Type: application/json'",
          `-d '{"quantity": 7}'`,
        ].join(' \\\n  '),
      )
      expect(await answer.getByRole('button', { name: 'Copy', includeHidden: true }).count()).toBe(3)
      expect(await page.content()).not.toContain(gateway.key)
    })

    test('sends a list of values as repeated parameters, and leaves out what is empty', async () => {
      await visit('#operation-listPets')
      await operation('listPets').getByText('Try it').click()
      expect((await send('listPets')).url()).toBe(`${baseUrl}/pets`)
      await operation('listPets').getByLabel('id', { exact: true }).fill('4, 5, ')
      await operation('listPets').getByLabel('status').selectOption('sold')
      expect((await send('listPets')).url()).toBe(`${baseUrl}/pets?id=4&id=5&status=sold`)
    })

    test('sends headers: If-None-Match, If-Match and Idempotency-Key, which are in the curl line too', async () => {
      const fill = async (id: string, values: Record<string, string>) => {
        await visit(`#operation-${id}`)
        const form = operation(id).locator('details.try')
        await form.evaluate((one) => one.setAttribute('open', ''))
        for (const [name, value] of Object.entries(values))
          await operation(id).getByLabel(name, { exact: true }).fill(value)
        const response = await send(id)
        const curl = await operation(id).locator('.answer pre').last().textContent()
        for (const [name, value] of Object.entries(values))
          if (/-/.test(name)) expect(curl).toContain(`${name}: ${value}`)
        return response
      }
      const etag = (await gateway.get('/inventory/2')).headers.get('etag') ?? ''
      const read = await fill('getInventoryItem', { petId: '2', 'If-None-Match': etag })
      expect(read.status()).toBe(304)
      const written = await fill('updateInventory', { petId: '2', 'If-Match': '"stale"' })
      expect(written.status()).toBe(412)
      const before = await gateway.prisma.category.count()
      await fill('createCategory', { 'Idempotency-Key': 'tried-twice' })
      const replayed = await send('createCategory')
      expect([replayed.status(), replayed.headers()['idempotency-replayed']]).toEqual([201, 'true'])
      expect(await gateway.prisma.category.count()).toBe(before + 1)
      problems.splice(0)
    })

    test('shows an error of the API as it is', async () => {
      await operation('listPets').getByLabel('limit').fill('many')
      expect((await send('listPets')).status()).toBe(400)
      expect(await operation('listPets').locator('.result').textContent()).toMatch(/^400 Bad Request/)
      const color = await operation('listPets')
        .locator('.result')
        .evaluate((one) => getComputedStyle(one).color)
      expect(color).toBe('rgb(173, 36, 29)')
      expect(await operation('listPets').locator('.answer pre').first().textContent()).toContain('invalid_request')
      problems.splice(0)
    })

    test('shows markup in a text of the database as text', async () => {
      const name = '<img src=x onerror=alert(1)>'
      const { id } = (await gateway.post('/categories', { name })).body
      await visit('#operation-getCategory')
      await operation('getCategory').getByText('Try it').click()
      await operation('getCategory').getByLabel('categoryId').fill(String(id))
      await send('getCategory')
      expect(await operation('getCategory').locator('.answer pre').first().textContent()).toContain(name)
      expect(await operation('getCategory').locator('img').count()).toBe(0)
      await gateway.delete(`/categories/${id}`)
    })

    test('says so if the API cannot be reached', async () => {
      await page.route(`${baseUrl}/categories`, (route) => route.abort())
      await visit('#operation-listCategories')
      await operation('listCategories').getByText('Try it').click()
      await operation('listCategories').getByRole('button', { name: 'Send GET' }).click()
      await expect
        .poll(() => operation('listCategories').locator('.result').textContent())
        .toContain('cannot be reached from this page')
      await page.unroute(`${baseUrl}/categories`)
      problems.splice(0)
    })

    test('succeeds for every operation with its default input', async () => {
      await sampleData()
      await visit()
      // Deletes come last, because the other operations need the same rows.
      const ids = operations()
        .filter((found) => !found['x-no-try-it-reason'])
        .sort((a, b) => Number(/^delete/.test(a.operationId)) - Number(/^delete/.test(b.operationId)))
        .map(({ operationId }) => operationId)
      const results = await page.evaluate(async (names) => {
        const found: Record<string, string> = {}
        for (const name of names) {
          const form = document.querySelector<HTMLFormElement>(`#operation-${name} form`)
          const result = form?.nextElementSibling
          if (!form || !result) continue
          form.requestSubmit()
          await new Promise<void>((done) => {
            new MutationObserver((_, observer) => {
              observer.disconnect()
              done()
            }).observe(result, { childList: true })
          })
          found[name] = `${result.textContent} ${result.nextElementSibling?.textContent}`
        }
        return found
      }, ids)
      expect(Object.keys(results)).toEqual(ids)
      for (const { operationId, responses } of operations())
        if (operationId in results)
          expect(`${operationId}: ${results[operationId]}`).toContain(`${operationId}: ${Object.keys(responses)[0]} `)
    })
  })

  test('can be used with the keyboard only', async () => {
    await visit()
    const focused = () => page.evaluate(() => document.activeElement?.textContent?.trim() ?? '')
    await page.keyboard.press('Tab')
    expect(await focused()).toBe('Skip to content')
    await page.keyboard.press('Enter')
    for (const next of ['add your key', 'Copy', 'Copy', 'Copy', 'OpenAPI, YAML']) {
      await page.keyboard.press('Tab')
      expect(await focused()).toBe(next)
    }
  })

  test('follows the system, or the theme that the reader chose, also after a reload', async () => {
    await visit()
    const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor)
    const light = 'rgb(255, 255, 255)'
    const theme = page.getByRole('button', { name: /^Theme/ })
    for (const [chosen, inLight, inDark] of [
      ['system', true, false],
      ['light', true, true],
      ['dark', false, false],
    ] as const) {
      await page.reload()
      expect(await theme.getAttribute('aria-label')).toBe(`Theme: ${chosen}`)
      for (const [colorScheme, isLight] of [
        ['light', inLight],
        ['dark', inDark],
      ] as const) {
        await page.emulateMedia({ colorScheme })
        expect((await ground()) === light).toBe(isLight)
      }
      await theme.click()
    }
    await page.emulateMedia({ colorScheme: 'light' })
  })

  test('can be read without JavaScript: everything is there, and nothing that would not work', async () => {
    const plain = await open({ javaScriptEnabled: false })
    await plain.goto(`${baseUrl}/docs#operation-createOrder`)
    const section = plain.locator('#operation-createOrder')
    expect(
      await section
        .locator('h4')
        .boundingBox()
        .then((box) => box?.y),
    ).toBeLessThan(200)
    expect(await section.locator('.panel').evaluateAll((all) => all.every((one) => one.checkVisibility()))).toBe(true)
    for (const name of ['Search', 'API key', 'Try it', 'curl']) {
      const control = plain.locator('button, summary', { hasText: name })
      expect(
        await control.evaluateAll(
          (all) => all.filter((one) => one.checkVisibility() && !('disabled' in one && one.disabled)).length,
        ),
        name,
      ).toBe(0)
    }
    await plain.setViewportSize({ width: 375, height: 800 })
    await plain.getByRole('button', { name: 'Menu' }).click()
    await plain.getByRole('navigation').getByRole('link', { name: 'Bans' }).click()
    expect(new URL(plain.url()).hash).toBe('#bans')
    await plain.close()
  })

  test('prints all of its content and nothing of its controls, in dark mode on a light ground', async () => {
    await visit()
    await page.emulateMedia({ media: 'print', colorScheme: 'dark' })
    const visible = (selector: string) =>
      page
        .locator(selector)
        .evaluateAll((all) => all.filter((one) => one.checkVisibility({ contentVisibilityAuto: true })).length)
    for (const selector of ['header button', 'nav', '.tabs', '.try', '.copy']) expect(await visible(selector)).toBe(0)
    expect(await visible('.panel')).toBe(operations().length * 3)
    const examples = page.locator('article .aside > details:not(.try) pre')
    expect(await visible('article .aside > details:not(.try) pre')).toBe(await examples.count())
    expect(await page.evaluate(() => getComputedStyle(document.body).color)).toBe('rgb(22, 32, 43)')
    await page.emulateMedia({ media: null, colorScheme: 'light' })
  })

  describe('with a tried operation, an open key panel and search', () => {
    beforeAll(async () => {
      await visit('#operation-createPet')
      await operation('createPet').getByText('Try it').click()
      await operation('createPet').getByRole('button', { name: 'Send POST' }).click()
      await operation('createPet').locator('.result').waitFor()
      problems.splice(0)
    })

    test.each([
      ['light', 1440],
      ['dark', 375],
    ] as const)('%s at %i pixels has no barriers, and nothing wider than the page', async (colorScheme, width) => {
      await page.emulateMedia({ colorScheme })
      await page.setViewportSize({ width, height: 900 })
      expect(await barriers(page)).toEqual([])
      expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(width)
      await page.screenshot({ path: `test/screenshots/reference-${colorScheme}-${width}.png` })
      if (width === 375) {
        await page.getByRole('button', { name: 'Menu' }).click()
        expect(await barriers(page, '#navigation')).toEqual([])
        await page.keyboard.press('Escape')
      }
      await page.locator('header .key').click()
      expect(await barriers(page, '#key')).toEqual([])
      await page.keyboard.press('Escape')
      await page.keyboard.press('Control+k')
      await page.getByRole('combobox').fill('pet')
      expect(await barriers(page, '#search')).toEqual([])
      await page.keyboard.press('Escape')
    })
  })

  test('loads at most 150 KB, and nothing but one style sheet and one script before its first content', async () => {
    const fresh = await open()
    const session = await fresh.context().newCDPSession(fresh)
    await session.send('Network.enable')
    let bytes = 0
    session.on('Network.loadingFinished', ({ encodedDataLength }) => {
      bytes += encodedDataLength
    })
    await fresh.goto(`${baseUrl}/docs`, { waitUntil: 'networkidle' })
    expect(bytes).toBeGreaterThan(10_000)
    expect(bytes).toBeLessThanOrEqual(150_000)
    const loaded = await fresh.evaluate(() =>
      performance.getEntriesByType('resource').map(({ name }) => new URL(name).pathname),
    )
    expect([...new Set(loaded)].sort()).toEqual([
      '/v1/docs/favicon.svg',
      '/v1/docs/reference.css',
      '/v1/docs/reference.js',
    ])
    await fresh.close()
  })

  test('logs nothing, violates no policy, and sends no request to other hosts', () => {
    expect(problems).toEqual([])
  })
})

inChromium('GraphiQL', () => {
  let page: Page
  let problems: string[]
  let bytes = 0
  beforeAll(async () => {
    await sampleData()
    const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, colorScheme: 'light' })
    context.setDefaultTimeout(60_000)
    page = await context.newPage()
    problems = collectProblems(page, host)
    const session = await page.context().newCDPSession(page)
    await session.send('Network.enable')
    session.on('Network.loadingFinished', ({ encodedDataLength }) => {
      bytes += encodedDataLength
    })
    await page.goto(`${baseUrl}/graphql`)
  })
  afterAll(() => page?.context().close())

  const answer = () => page.locator('.graphiql-response')
  const keyMessage = () => page.locator('#key-message')
  const runStatus = () => page.locator('.graphiql-response .run-status').textContent()
  const run = () => page.locator('.graphiql-execute-button').click()
  const openTab = (name: string) => page.locator('.graphiql-tab-button').getByText(name, { exact: true }).click()
  const type = async (text: string) => {
    await page.locator('.graphiql-query-editor .CodeMirror').click()
    await page.keyboard.press('ControlOrMeta+A')
    await page.keyboard.insertText(text)
  }
  const usesKey = async (key: string) => {
    await page.getByLabel('API key', { exact: true }).fill(key)
    await page.getByRole('button', { name: 'Use key' }).click()
  }

  test('opens with the schema and without an error, before there is a key; all of it has at most 600 KB', async () => {
    await page.locator('.graphiql-query-editor .CodeMirror').click()
    await page.getByRole('button', { name: 'New tab' }).click()
    await page.locator('.graphiql-query-editor .CodeMirror').click()
    await page.keyboard.press('ControlOrMeta+A')
    await page.keyboard.type('{ inven')
    await page.locator('.CodeMirror-hints').getByText('inventoryItem').waitFor()
    await page.keyboard.press('Escape')
    expect(bytes).toBeGreaterThan(10_000)
    // The promise is 1.4 MB.
    expect(bytes).toBeLessThanOrEqual(600_000)
    expect(problems).toEqual([])
  })

  test('asks for a key where it is entered, and says there what is wrong with it', async () => {
    const revoked = await gateway.createKey({ revokedAt: new Date(0) })
    await openTab('Pets')
    await expect
      .poll(runStatus)
      .toMatch(/first add your API key at the top right\. Run sends the query Pets to .*\/graphql\./)
    await run()
    await expect.poll(() => keyMessage().textContent()).toBe('Requests need a key: paste yours here.')
    await answer().getByText('Nothing was sent.').waitFor()
    for (const [key, message] of [
      ['schlüssel', 'a key starts with petstore_'],
      ['petstore_wrong', 'This key is not valid.'],
      [revoked.key, 'This key is not valid.'],
    ] as const) {
      await usesKey(key)
      await expect.poll(() => keyMessage().textContent()).toContain(message)
      expect(await keyMessage().isVisible()).toBe(true)
    }
    // Chromium logs every 401.
    expect(problems.splice(0)).toEqual([expect.stringContaining('401'), expect.stringContaining('401')])
  })

  test('runs each example as soon as there is a key, and shows what is left', async () => {
    await usesKey(gateway.key)
    await page.getByRole('meter').first().waitFor()
    await page.keyboard.press('Escape')
    for (const [tab, shown] of [
      ['Pets', '"Rex"'],
      ['NextPage', '"status"'],
      ['LowStock', '"totalCount"'],
      ['Overview', '"Dogs"'],
      ['CreatePet', '"createPet"'],
      ['Sell', '"inventory"'],
      ['SellTheLast', '"sold"'],
      ['Quota', '"plan"'],
    ] as const) {
      await openTab(tab)
      await run()
      await answer().getByText(shown).first().waitFor()
      expect(await answer().getByText('"errors"').count()).toBe(0)
    }
    await expect.poll(() => page.locator('header .key').textContent()).toMatch(/^Enterprise · [\d,]+ left$/)
    expect(await page.content()).not.toContain(gateway.key)
    expect(problems).toEqual([])
  })

  test('says what Run will do with the operations in the editor, and then what it did', async () => {
    const sends = (operation: string) => `Run sends the ${operation} to ${baseUrl}/graphql. The answer appears here.`
    await page.reload()
    await openTab('CreatePet')
    await expect.poll(runStatus).toBe(`${sends('mutation CreatePet')} A mutation changes data of this service.`)
    await openTab('Overview')
    await expect.poll(runStatus).toBe(sends('query Overview'))
    await run()
    await expect.poll(runStatus).toMatch(/^200 OK in \d+ ms, at a cost of 2\.$/)
    await openTab('Quota')
    await expect.poll(runStatus).not.toContain('cost of 2')
    // The answer is still there.
    await openTab('Overview')
    await expect.poll(runStatus).toMatch(/at a cost of 2\.$/)
    await openTab('Quota')
    await type('{ quota { plan } }')
    await expect.poll(runStatus).toBe(sends('query'))
    await type('query A { quota { plan } } query B { quota { plan } }')
    await expect.poll(runStatus).toBe('The button asks which of the 2 operations to send.')
    await type('# only a comment')
    await expect.poll(runStatus).toMatch(/^Write an operation/)
    await type('fragment A on Pet { id }')
    await expect.poll(runStatus).toBe('The text has no operation to run.')
    await type('subscription { pets { id } }')
    await expect.poll(runStatus).toBe('This service has no subscriptions.')
    await type('{ quota { plan } }')
    await page.route(`${baseUrl}/graphql`, (route) => route.abort())
    await run()
    await expect.poll(runStatus).toBe('No answer.')
    await page.unroute(`${baseUrl}/graphql`)
    // What is changed before there is an answer was not sent.
    let release = () => {}
    const released = new Promise<void>((done) => {
      release = done
    })
    await page.route(`${baseUrl}/graphql`, (route) => released.then(() => route.continue()))
    await run()
    await expect.poll(runStatus).toBe('Sent …')
    await type('query Later { quota { plan } }')
    const response = page.waitForResponse(`${baseUrl}/graphql`)
    release()
    await response
    await answer().getByText('"Enterprise"').waitFor()
    expect(await runStatus()).toBe(sends('query Later'))
    await page.unroute(`${baseUrl}/graphql`)
    await type('{ quota')
    await expect.poll(runStatus).toBe('The text has a syntax error. If you run it, the answer says where.')
    await run()
    await expect.poll(runStatus).toMatch(/^400 Bad Request in \d+ ms, at a cost of 1\.$/)
    problems.splice(0)
  })

  test('sends the headers that are entered, for example an Idempotency-Key', async () => {
    await openTab('CreatePet')
    await page.getByRole('button', { name: 'Headers', exact: true }).click()
    await page.locator('.graphiql-editor-tool .graphiql-editor:not(.hidden) .CodeMirror').click()
    await page.keyboard.insertText('{"Idempotency-Key": "one"}')
    const sent = page.waitForRequest((request) => request.method() === 'POST')
    await run()
    expect((await sent).headers()).toMatchObject({
      'idempotency-key': 'one',
      authorization: `Bearer ${gateway.key}`,
    })
  })

  test('shares the key with the reference, also while both are open', async () => {
    const reference = await page.context().newPage()
    await reference.goto(`${baseUrl}/docs`)
    await expect.poll(() => reference.locator('header .key').textContent()).toMatch(/^Enterprise · /)
    await reference.locator('header .key').click()
    await reference.getByRole('button', { name: 'Remove key' }).click()
    await expect.poll(() => page.locator('header .key').textContent()).toBe('API key')
    await reference.getByLabel('API key', { exact: true }).fill(gateway.key)
    await reference.getByRole('button', { name: 'Use key' }).click()
    await expect.poll(() => page.locator('header .key').textContent()).toMatch(/^Enterprise · /)
    await reference.close()
  })

  test('opens with a key that was revoked, and says so where a key is entered', async () => {
    await page.evaluate(() => localStorage.setItem('petstore-key', 'petstore_revoked'))
    await page.reload()
    await expect.poll(() => page.locator('header .key').textContent()).toBe('Check key')
    expect(await keyMessage().isVisible()).toBe(false)
    await run()
    await answer().getByText('"unauthorized"').waitFor()
    await expect.poll(() => keyMessage().isVisible()).toBe(true)
    await expect.poll(() => keyMessage().textContent()).toContain('This key is not valid.')
    await usesKey(gateway.key)
    await page.getByRole('meter').first().waitFor()
    await page.keyboard.press('Escape')
    expect(problems.splice(0).filter((problem) => !problem.includes('401'))).toEqual([])
  })

  test.each([
    ['light', 1440],
    ['dark', 375],
  ] as const)('%s at %i pixels can be used, and our parts have no barriers', async (colorScheme, width) => {
    await page.emulateMedia({ colorScheme })
    await page.setViewportSize({ width, height: 800 })
    await page.reload()
    await openTab('Pets')
    await run()
    await answer().getByText('"Rex"').waitFor()
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(width)
    for (const part of ['.graphiql-query-editor', '.graphiql-response', '.graphiql-execute-button'])
      expect(await page.locator(part).evaluate((one) => one.getBoundingClientRect().right)).toBeLessThanOrEqual(width)
    for (const part of ['.graphiql-query-editor', '.graphiql-response']) {
      const { width: wide = 0, height: high = 0 } = (await page.locator(part).boundingBox()) ?? {}
      expect(Math.min(wide, high)).toBeGreaterThan(200)
    }
    const ours = (await barriers(page)).filter(
      (barrier) => !/CodeMirror|graphiql-tab|li:nth-child|textarea\[readonly/.test(barrier),
    )
    expect(ours).toEqual([])
    await page.screenshot({ path: `test/screenshots/graphiql-${colorScheme}-${width}.png` })
    await page.locator('header .key').click()
    expect(await barriers(page, '#key')).toEqual([])
    await page.keyboard.press('Escape')
  })

  test('logs nothing, violates no policy, and sends no request to other hosts', () => {
    expect(problems).toEqual([])
  })
})

inChromium('a page of another origin', () => {
  /** What a script on that page can read of a response, or that it can read nothing. */
  async function seenFrom(origin: string, url: string, init: RequestInit = {}) {
    const page = await browser.newPage()
    // Any page without a Content-Security-Policy works.
    await page.goto(`${origin}/healthz`)
    const request = { ...init, headers: { authorization: `Bearer ${gateway.key}`, ...init.headers } }
    const seen = await page.evaluate(
      ([to, how]) =>
        fetch(to, how).then(
          async (response) => ({
            status: response.status,
            headers: [...response.headers.keys()],
            body: await response.text(),
          }),
          () => 'nothing',
        ),
      [url, request] as const,
    )
    await page.close()
    return seen
  }

  test('can read responses with the exposed headers, and no other headers', async () => {
    const body = JSON.stringify({ name: 'Fish' })
    const headers = { 'content-type': 'application/json' }
    const seen = await seenFrom('http://elsewhere.test', `${baseUrl}/categories`, { method: 'POST', headers, body })
    const safelisted = ['cache-control', 'content-length', 'content-type']
    const rateLimits = [
      'ratelimit',
      'ratelimit-policy',
      'x-ratelimit-cost',
      'x-ratelimit-limit',
      'x-ratelimit-remaining',
      'x-ratelimit-reset',
    ]
    expect(seen).toMatchObject({ status: 201, body: expect.stringContaining('Fish') })
    expect(seen).toHaveProperty('headers', [...safelisted, 'etag', 'location', ...rateLimits, 'x-request-id'].sort())
  })

  test('can read error responses', async () => {
    const headers = { authorization: 'Bearer wrong' }
    const seen = await seenFrom('http://elsewhere.test', `${baseUrl}/pets`, { headers })
    expect(seen).toMatchObject({ status: 401, body: expect.stringContaining('unauthorized') })
  })

  test('cannot read responses if it sends cookies', async () => {
    expect(await seenFrom('http://elsewhere.test', `${baseUrl}/pets`, { credentials: 'include' })).toBe('nothing')
  })

  test('cannot read responses if CORS_ORIGINS lists other origins', async () => {
    const { database, key } = gateway
    const narrow = await useGateway({
      database: { ...database, close: async () => {} },
      env: { CORS_ORIGINS: 'http://friend.test' },
    })
    const { url } = await narrow.listen()
    const headers = { authorization: `Bearer ${key}` }
    expect(await seenFrom('http://elsewhere.test', `${url}/pets`, { headers })).toBe('nothing')
    expect(await seenFrom('http://friend.test', `${url}/pets`, { headers })).toMatchObject({ status: 200 })
  })
})
