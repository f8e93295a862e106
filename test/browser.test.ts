import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { seed } from '../prisma/seed.js'
import { barriers, chromiumPath, collectProblems, launch } from './support/browser.js'
import { type Gateway, openGateway, useGateway } from './support/gateway.js'

const host = 'petstore.test'
const baseUrl = `http://${host}/v1`

interface Api {
  info: { description: string }
  paths: Record<string, Record<string, Operation>>
}

interface Operation {
  operationId: string
  tags: string[]
  deprecated?: true
  'x-stability'?: string
  'x-no-try-it-reason'?: string
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
  await gateway.prisma.$executeRaw`TRUNCATE "Order", "InventoryItem", "Pet", "Category" RESTART IDENTITY`
  await seed(gateway.prisma)
}

inChromium('the reference', () => {
  let page: Page
  let problems: string[]
  let api: Api

  const operation = (id: string) => page.locator(`[id="operations-${id}"]`)
  const follow = (hash: string) =>
    page.evaluate((to) => {
      location.hash = to
    }, hash)
  const visit = async () => {
    await page.goto(`${baseUrl}/docs`)
    await page.locator('.opblock').first().waitFor()
  }

  beforeAll(async () => {
    api = (await gateway.get('/openapi.json')).body
    page = await browser.newPage({ viewport: { width: 1280, height: 800 }, colorScheme: 'light' })
    page.setDefaultTimeout(10_000)
    problems = collectProblems(page, host)
    await visit()
  })

  /** The operations of the document, with the fragment of their link. */
  const operations = () =>
    Object.values(api.paths)
      .flatMap((methods) => Object.values(methods))
      .flatMap((found) => found.tags.map((tag) => ({ ...found, tag, hash: `#operations-${tag}-${found.operationId}` })))

  test('has the groups Pets and Store, and every operation in one of them', async () => {
    const navigation = page.getByRole('navigation', { name: 'Reference' })
    expect(await navigation.getByRole('heading').allTextContents()).toEqual(['Guides', 'Pets', 'Store'])
    for (const name of ['Pets', 'Store']) {
      const links = navigation.locator('section', { has: page.getByRole('heading', { name }) }).getByRole('link')
      const wanted = operations().flatMap(({ tag, hash }) => (tag === name ? [hash] : []))
      expect(await links.evaluateAll((found) => found.map((link) => link.getAttribute('href')))).toEqual(wanted)
    }
  })

  test('has every guide of the document, with a link to it', async () => {
    const titles = [...api.info.description.matchAll(/^## (.+)$/gm)].map(([, title]) => title ?? '')
    expect(titles.length).toBeGreaterThanOrEqual(8)
    const guides = await page
      .locator('nav section')
      .first()
      .getByRole('link')
      .evaluateAll((links) =>
        links.map((link) => {
          const section = link.ownerDocument.querySelector(link.getAttribute('href') ?? '')
          return {
            link: link.textContent,
            title: section?.querySelector('h2')?.textContent,
            text: section?.textContent,
          }
        }),
      )
    expect(guides.map(({ link }) => link)).toEqual([...titles, 'Your API key'])
    for (const { link, title, text } of guides) {
      expect(title).toBe(link)
      expect(text?.length).toBeGreaterThan(100)
    }
    await page.getByRole('link', { name: 'Backing off' }).first().click()
    const heading = page.getByRole('heading', { name: 'Backing off' })
    await expect.poll(async () => (await heading.boundingBox())?.y).toBeLessThan(200)
  })

  test('the link of every operation opens it, with samples in curl, JavaScript and Python', async () => {
    expect(operations()).toHaveLength(19)
    // Runs in the page, which is much faster than separate calls.
    const shown = await page.evaluate(
      async (hashes) => {
        const found: Record<string, { samples: unknown[]; tryable: boolean | undefined }> = {}
        const until = async <T>(find: () => T | null) => {
          for (let result = find(); ; result = find()) {
            if (result) return result
            await new Promise((resolve) => setTimeout(resolve))
          }
        }
        for (const hash of hashes) {
          location.hash = hash
          const element = await until(() => document.querySelector(`${hash} .samples`))
          const samples: unknown[] = []
          for (const button of element.querySelectorAll<HTMLElement>('[aria-pressed]')) {
            const label = button.textContent
            button.click()
            await until(() => element.querySelector('[aria-pressed=true]')?.textContent === label)
            samples.push({ label, source: element.querySelector('pre')?.textContent })
          }
          const buttons = [...document.querySelectorAll<HTMLButtonElement>(`${hash} button`)]
          const tryable = buttons.find((button) => button.textContent?.trim() === 'Try it out')?.disabled === false
          found[hash] = { samples, tryable }
          document.querySelector<HTMLElement>(`${hash} .opblock-summary button`)?.click()
        }
        return found
      },
      operations().map(({ hash }) => hash),
    )
    for (const { hash, 'x-codeSamples': samples } of operations()) {
      expect(samples.map(({ label }) => label)).toEqual(['curl', 'JavaScript', 'Python'])
      expect(shown[hash]?.samples).toEqual(samples.map(({ label, source }) => ({ label, source })))
      expect(shown[hash]?.tryable, hash).toBe(hash !== '#operations-Store-listOrders')
    }
  })

  test('the navigation opens an operation, also after it was closed', async () => {
    const link = page.locator('nav a[href="#operations-Pets-listPets"]')
    const button = operation('Pets-listPets').locator('.opblock-summary button')
    for (let times = 0; times < 2; times++) {
      await link.click()
      await expect.poll(() => button.getAttribute('aria-expanded')).toBe('true')
      expect(await link.getAttribute('aria-current')).toBe('location')
      await button.click()
      expect(await button.getAttribute('aria-expanded')).toBe('false')
    }
  })

  test('shows the sunset date of the deprecated operation, and which operations are experimental or beta', async () => {
    const marks = (id: string) => operation(id).locator('.mark').allTextContents()
    expect(await marks('Pets-getPet')).toEqual(['deprecated', 'ends on 2031-02-03'])
    for (const { tag, operationId, deprecated, 'x-stability': stability } of operations())
      if (!deprecated) expect(await marks(`${tag}-${operationId}`)).toEqual(stability ? [stability] : [])
    expect(await page.locator('.mark.experimental, .mark.beta').count()).toBe(2)
  })

  test('every operation can be tried except GET /store/orders, which gives the reason', async () => {
    await follow('#operations-Store-listOrders')
    const orders = operation('Store-listOrders')
    const button = orders.getByRole('button', { name: 'Try it out' })
    expect([await button.count(), await button.isDisabled()]).toEqual([1, true])
    const reason = api.paths['/store/orders']?.get?.['x-no-try-it-reason']
    expect(await orders.locator('.no-try').textContent()).toBe(`Try it out${reason}`)
  })

  test('a pasted key is sent with requests, is not shown, and can be removed', async () => {
    await page.getByLabel('API key', { exact: true }).fill(gateway.key)
    await page.getByRole('button', { name: 'Use key' }).click()
    await follow('#operations-Store-getQuota')
    const quota = operation('Store-getQuota')
    await quota.getByRole('button', { name: 'Try it out' }).click()
    const sent = page.waitForRequest(`${baseUrl}/quota`)
    await quota.getByRole('button', { name: 'Execute' }).click()
    expect((await sent).headers().authorization).toBe(`Bearer ${gateway.key}`)
    const live = quota.locator('.live-responses-table')
    await live.getByText('Enterprise').first().waitFor()
    expect(await live.locator('tbody .response-col_status').textContent()).toContain('200')
    expect(await page.content()).not.toContain(gateway.key)

    await page.getByRole('button', { name: 'Remove key' }).click()
    const answered = page.waitForResponse(`${baseUrl}/quota`)
    await quota.getByRole('button', { name: 'Execute' }).click()
    expect((await answered).request().headers().authorization).toBeUndefined()
    await live.getByText('unauthorized').first().waitFor()
    // Chromium logs every 401.
    expect(problems.splice(0)).toEqual([expect.stringContaining('401')])
  })

  test('every operation that can be tried succeeds with its default input', async () => {
    await sampleData()
    await visit()
    await page.getByLabel('API key', { exact: true }).fill(gateway.key)
    await page.getByRole('button', { name: 'Use key' }).click()
    // Deletes come last, because the other operations need the same rows.
    const inOrder = [...operations()].sort((a, b) => Number(/-delete/.test(a.hash)) - Number(/-delete/.test(b.hash)))
    const tried = inOrder.filter((found) => !found['x-no-try-it-reason']).map(({ hash }) => hash)
    const urls: string[] = []
    page.on('request', (request) => urls.push(request.url()))
    const statuses = await page.evaluate(async (hashes) => {
      const until = async <T>(find: () => T | null | undefined) => {
        for (let result = find(); ; result = find()) {
          if (result) return result
          await new Promise((resolve) => setTimeout(resolve))
        }
      }
      const found: Record<string, number> = {}
      for (const hash of hashes) {
        const button = (text: string) => () =>
          [...document.querySelectorAll<HTMLElement>(`${hash} button`)].find((one) => one.textContent?.trim() === text)
        location.hash = hash
        if (!document.querySelector(`${hash} .execute`)) (await until(button('Try it out'))).click()
        ;(await until(button('Execute'))).click()
        const status = await until(() =>
          document.querySelector(`${hash} .live-responses-table tbody .response-col_status`),
        )
        found[hash] = Number.parseInt(status.textContent ?? '', 10)
        document.querySelector<HTMLElement>(`${hash} .opblock-summary button`)?.click()
      }
      return found
    }, tried)
    // Optional parameters start empty or with their default.
    expect(urls).toEqual(expect.arrayContaining([`${baseUrl}/pets`, `${baseUrl}/inventory?limit=20`]))
    const expectedOperations = operations().filter(({ hash }) => hash in statuses)
    expect(expectedOperations).toHaveLength(18)
    for (const { hash, responses } of expectedOperations)
      expect(Object.keys(responses)[0], hash).toBe(String(statuses[hash]))
    await page.getByRole('button', { name: 'Remove key' }).click()
  })

  test('can be used with the keyboard only', async () => {
    await visit()
    const focused = () => page.evaluate(() => document.activeElement?.textContent ?? '')
    await page.keyboard.press('Tab')
    expect(await focused()).toBe('Skip to content')
    await page.keyboard.press('Enter')
    await page.keyboard.press('Tab')
    expect(await focused()).toBe('OpenAPI 3.0, YAML')
    for (let presses = 0; !(await focused()).includes('/categories'); presses++) {
      expect(presses).toBeLessThan(100)
      await page.keyboard.press('Tab')
    }
    await page.keyboard.press('Enter')
    await operation('Pets-listCategories').getByText('Responses').waitFor()
    await page.keyboard.press('Tab')
    expect(await focused()).toBe('curl')
  })

  describe('with a tried operation and one that cannot be tried', () => {
    beforeAll(async () => {
      for (const id of ['Store-createOrder', 'Store-listOrders']) await operation(id).getByRole('button').click()
      await operation('Store-createOrder').getByRole('button', { name: 'Try it out' }).click()
    })

    test.each([
      ['light', 1280],
      ['dark', 1280],
      ['light', 375],
      ['dark', 375],
    ] as const)('%s at %i pixels has no barriers, and nothing wider than the page', async (colorScheme, width) => {
      await page.emulateMedia({ colorScheme })
      await page.setViewportSize({ width, height: 800 })
      const menu = page.getByRole('button', { name: 'Menu' })
      if ((await menu.isVisible()) && (await menu.getAttribute('aria-expanded')) === 'false') await menu.click()
      expect(await page.getByRole('navigation').isVisible()).toBe(true)
      expect(await barriers(page)).toEqual([])
      const { ground, scrollWidth } = await page.evaluate(() => ({
        ground: getComputedStyle(document.body).backgroundColor,
        scrollWidth: document.documentElement.scrollWidth,
      }))
      expect(scrollWidth).toBe(width)
      expect(ground === 'rgb(255, 255, 255)').toBe(colorScheme === 'light')
      await page.screenshot({ path: `test/screenshots/reference-${colorScheme}-${width}.png` })
    })
  })

  test('logs nothing, violates no policy, and sends no request to other hosts', () => {
    expect(problems).toEqual([])
  })
})

inChromium('GraphiQL', () => {
  test('runs its first example with a pasted key, violates no policy, and sends no request to other hosts', async () => {
    await sampleData()
    const page = await browser.newPage()
    page.setDefaultTimeout(10_000)
    const problems = collectProblems(page, host)
    await page.goto(`${baseUrl}/graphql`)
    const editor = (name: string) => page.locator(`[data-uri$="${name}"].monaco-editor`)
    await editor('request-headers.json').click()
    await page.keyboard.press('ControlOrMeta+A')
    await page.keyboard.press('Delete')
    await page.keyboard.insertText(JSON.stringify({ Authorization: `Bearer ${gateway.key}` }))
    await editor('operation.graphql').click({ position: { x: 200, y: 120 } })
    await page.keyboard.press('ControlOrMeta+Enter')
    await page.locator('.graphiql-response').getByText('"Rex"').waitFor()
    await page.screenshot({ path: 'test/screenshots/graphiql.png' })
    // Without a key, reading the schema fails, which Chromium logs.
    expect(problems.filter((problem) => !problem.includes('401'))).toEqual([])
    await page.close()
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
