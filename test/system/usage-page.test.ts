import type { Browser, BrowserContext, Page } from 'playwright-core'
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import type { ApiKey } from '../../prisma/generated/client/client.js'
import { chromiumPath } from '../support/chromium.js'
import { type Gateway, openGateway } from '../support/gateway.js'
import { barriers, collectProblems, launch } from './browser.js'

const host = 'petstore.test'
const baseUrl = `http://${host}/v1`
const DAY_MS = 86_400_000

// Needs Chromium: CHROMIUM_PATH, or chromium or google-chrome on PATH.
describe.skipIf(!chromiumPath)('the page of the usage of a key', () => {
  let gateway: Gateway
  let browser: Browser
  let context: BrowserContext
  let page: Page
  let problems: string[]
  let asked: string[]
  beforeAll(async () => {
    gateway = await openGateway({ env: { BASE_URL: baseUrl }, keyTtlMs: 0 })
    browser = await launch((await gateway.listen()).port)
  })
  afterAll(async () => {
    await browser?.close()
    await gateway?.close()
  })
  beforeEach(async () => {
    context = await browser.newContext({ viewport: { width: 1280, height: 900 }, colorScheme: 'light' })
    context.setDefaultTimeout(60_000)
    page = await context.newPage()
    problems = collectProblems(page, host)
    asked = []
    page.on('request', (request) => {
      if (request.url().startsWith(`${baseUrl}/quota`)) asked.push(request.url().slice(baseUrl.length))
    })
    onTestFinished(async () => {
      await context.close()
      // Chromium logs each refusal.
      expect(problems.filter((problem) => !/Failed to load resource/.test(problem))).toEqual([])
    })
  })

  const daysAgo = (days: number) => new Date(Math.floor(Date.now() / DAY_MS - days) * DAY_MS)
  const dateOf = (day: Date) => day.toISOString().slice(0, 10)

  /** A key that has used something on each of the last days but today. */
  async function createUsed(data: Partial<ApiKey> = {}, days = 40) {
    const created = await gateway.createKey({ name: 'Corner shop', plan: 'Pro', ...data })
    await gateway.prisma.apiKeyUsage.createMany({
      data: Array.from({ length: days }, (_, i) => ({
        keyId: created.row.id,
        name: created.row.name,
        day: daysAgo(i + 1),
        requests: 1_000 + ((i * 7) % 13) * 60 - ((i + 3) % 7 < 2 ? 600 : 0),
        refusals: i % 11 === 3 ? 190 : i % 5,
        outcomes: i % 11 === 3 ? { rate_limited: 120, key_banned: 30, not_found: 40 } : { not_found: i % 5 },
        cost: 1_200 + ((i * 7) % 13) * 70 - ((i + 3) % 7 < 2 ? 700 : 0),
      })),
    })
    return created
  }
  /** Keeps the requests of the page itself out of the usage of a key. */
  async function leaveOut({ id }: ApiKey) {
    await gateway.prisma.$executeRawUnsafe(
      `ALTER TABLE "ApiKeyUsageHour" ADD CONSTRAINT away CHECK ("keyId" <> ${id}) NOT VALID`,
    )
    onTestFinished(
      async () => void (await gateway.prisma.$executeRaw`ALTER TABLE "ApiKeyUsageHour" DROP CONSTRAINT away`),
    )
  }
  const field = (on = page) => on.getByRole('textbox', { name: 'Your API key' })
  const pastes = async (key: string) => {
    await field().fill(key)
    await page.getByRole('button', { name: 'Show usage' }).click()
  }
  const remembers = (key: string, on = page) =>
    on.addInitScript((text) => {
      if (!sessionStorage.getItem('begun')) localStorage.setItem('petstore-key', text)
      sessionStorage.setItem('begun', '')
    }, key)
  const visit = () => page.goto(`${baseUrl}/usage`)
  const bars = () => page.locator('#windows meter').evaluateAll((all) => all.map((one) => one.ariaLabel))
  const rows = () =>
    page
      .locator('#rows tr')
      .evaluateAll((all) => all.map((row) => [...row.children].map((cell) => cell.textContent ?? '')))
  const legend = async () => [
    await page.locator('#legend-title').textContent(),
    ...(await page.locator('#legend dd').allTextContents()),
  ]
  const note = () => page.locator('#days-note').textContent()
  /** Everything in the page that is about a key. */
  const shown = () => page.locator('#usage').evaluate((one) => (one.checkVisibility() ? one.textContent : ''))
  const isRead = () => page.locator('#plot svg').waitFor()
  const look = (name: string) => page.screenshot({ path: `test/screenshots/usage-${name}.png`, fullPage: true })
  const width = () => page.evaluate(() => document.documentElement.scrollWidth)

  test('asks for a key when there is none, and asks the API nothing', async () => {
    await visit()
    await field().waitFor()
    expect(await shown()).toBe('')
    expect(asked).toEqual([])
    await pastes('')
    expect(await page.locator('#ask-message').textContent()).toBe('Paste a key first. It starts with petstore_.')
    await pastes('schlüssel')
    await expect.poll(() => page.locator('#ask-message').textContent()).toContain('This is not a key of this API')
    expect(asked).toEqual([])
  })

  test('shows what a pasted key is, what is left of both windows, and when they reset', async () => {
    const expiresAt = new Date(Date.now() + 9.5 * DAY_MS)
    const { key, row } = await createUsed({ expiresAt, access: 'read', owner: '<b>Ann</b> & Söhne' })
    await visit()
    await pastes(key)
    await isRead()
    expect(await page.locator('#key-name').textContent()).toBe('Corner shop')
    expect(await page.locator('#key-plan').textContent()).toBe('Pro plan')
    const facts = await page.locator('#facts dd').allTextContents()
    expect(facts[0]).toBe('<b>Ann</b> & Söhne')
    expect(facts[1]).toBe(row.prefix)
    expect(facts[2]).toBe('only read')
    expect(facts[4]).toMatch(/^\d+ \w+ 20\d\d, \d\d:\d\d \(in\s\d+\sdays\)$/)
    const times = page.locator('#facts time')
    expect(await times.evaluateAll((all) => all.map((one) => (one as HTMLTimeElement).dateTime))).toEqual([
      row.createdAt.toISOString(),
      expiresAt.toISOString(),
    ])
    // The history costs 1.
    await expect.poll(bars).toEqual(['299 of 300 left this minute', '9,999 of 10,000 left this day'])
    expect(await page.locator('#windows .soft').allTextContents()).toEqual([
      expect.stringMatching(/^resets in \d+ s$/),
      expect.stringMatching(/^resets in 24 h$/),
    ])
    expect(asked).toEqual(['/quota', '/quota/usage?days=30', '/quota'])
    await look('light')
  })

  test('shows the figures of each day in a plot and in a table; to choose among days that were read costs nothing', async () => {
    const { key, row } = await createUsed()
    await leaveOut(row)
    await remembers(key)
    await visit()
    await isRead()
    const stored = await gateway.prisma.apiKeyUsage.findMany({ where: { keyId: row.id }, orderBy: { day: 'desc' } })
    const figures = new Map(stored.map(({ day, ...found }) => [dateOf(day), found]))
    await page.getByText('The same figures as a table').click()
    for (const days of [7, 90, 30]) {
      await page.getByRole('button', { name: `${days} days` }).click()
      await expect.poll(() => page.locator('#rows tr').count()).toBe(days)
      const dates = Array.from({ length: days }, (_, i) => dateOf(daysAgo(i)))
      const used = dates.map((date) => {
        const { requests = 0, refusals = 0, cost = 0, outcomes = {} } = figures.get(date) ?? {}
        const { rate_limited = 0, key_banned = 0 } = outcomes as Record<string, number>
        const limited = rate_limited + key_banned
        return { requests: Number(requests), limited, errors: Number(refusals) - limited, cost: Number(cost) }
      })
      expect(await rows()).toEqual(
        used.map((day, i) => [dates[i], ...Object.values(day).map((figure) => figure.toLocaleString('en'))]),
      )
      const sum = (of: 'requests' | 'limited' | 'errors' | 'cost') => used.reduce((total, day) => total + day[of], 0)
      const withShare = (figure: number) =>
        figure === 0 ? '0' : `${figure.toLocaleString('en')}${Math.round((1000 * figure) / sum('requests')) / 10} %`
      expect(await legend()).toEqual([
        `Last ${days} days`,
        sum('requests').toLocaleString('en'),
        withShare(sum('limited')),
        withShare(sum('errors')),
        sum('cost').toLocaleString('en'),
      ])
      expect(await page.locator('#plot rect.requests').count()).toBe(days)
      const pressed = page.locator('#ranges [aria-pressed="true"]')
      expect(await pressed.allTextContents()).toEqual([`${days} days`])
    }
    expect(asked.filter((path) => path.includes('usage'))).toEqual(['/quota/usage?days=30', '/quota/usage?days=90'])
    // A bar is as high as its day has requests, the errors at its top, two pixels of each kind at least.
    const heights = (className: string) =>
      page
        .locator(`#plot rect.${className}`)
        .evaluateAll((all) => all.map((one) => Number(one.getAttribute('height'))).reverse())
    const [accepted, limits, others] = [await heights('requests'), await heights('limited'), await heights('errors')]
    const days = (await rows()).map(([, ...cells]) => cells.map((cell) => Number(cell.replace(',', ''))))
    const most = Math.max(...days.map(([requests = 0, limited = 0, errors = 0]) => requests - limited - errors))
    const scale = Math.max(...accepted) / most
    for (const [i, [requests = 0, limited = 0, errors = 0]] of days.entries()) {
      expect(accepted[i]).toBeCloseTo((requests - limited - errors) * scale, 3)
      expect(limits[i]).toBeCloseTo(limited && Math.max(2, limited * scale), 3)
      expect(others[i]).toBeCloseTo(errors && Math.max(2, errors * scale), 3)
    }
    expect(Math.max(...limits)).toBeGreaterThan(2)
  })

  test('shows the figures of the day under the pointer', async () => {
    const { key } = await createUsed()
    await remembers(key)
    await visit()
    await isRead()
    const bar = await page.locator('#plot rect.requests').nth(28).boundingBox()
    await page.mouse.move(bar?.x ?? 0, bar?.y ?? 0)
    const yesterday = new Intl.DateTimeFormat('en-GB', { timeZone: 'UTC', dateStyle: 'full' }).format(daysAgo(1))
    expect(await legend()).toEqual([yesterday, '1,000', '0', '0', '1,200'])
    await look('pointer')
    await page.mouse.move(0, 0)
    expect((await legend())[0]).toBe('Last 30 days')
  })

  test('says how many requests ended with which error, and what each means', async () => {
    const { key, row } = await createUsed()
    await leaveOut(row)
    await remembers(key)
    await visit()
    await isRead()
    const outcomes = () =>
      page
        .locator('#outcomes dl > div')
        .evaluateAll((all) => all.map((one) => [...one.children].map((x) => x.textContent)))
    expect(await page.locator('#outcomes h3').textContent()).toBe('Errors: Last 30 days')
    // Three of the 29 days before today have the errors of a key that was limited.
    expect(await outcomes()).toEqual([
      ['rate_limited 429', '360', expect.stringMatching(/^A window is used up\./)],
      ['not_found 404', '169', 'The path or the resource does not exist.'],
      ['key_banned 429', '90', expect.stringMatching(/^The key is temporarily banned\./)],
    ])
    await gateway.prisma.apiKeyUsage.updateMany({
      where: { keyId: row.id },
      data: { refusals: 0, outcomes: {} },
    })
    await page.getByRole('button', { name: 'Refresh' }).click()
    await expect.poll(() => page.locator('#outcomes').isVisible()).toBe(false)
  })

  test('shows the hours of a day that is clicked or chosen in the table, read once, and leads back to days', async () => {
    const { key, row } = await createUsed()
    await leaveOut(row)
    await gateway.prisma.apiKeyUsage.deleteMany({ where: { keyId: row.id, day: { gte: daysAgo(3) } } })
    const hours = Array.from({ length: 97 }, (_, i) => new Date(daysAgo(3).getTime() + i * 3_600_000))
    // A constraint for gateways must not keep the test from writing.
    await gateway.prisma.$executeRaw`ALTER TABLE "ApiKeyUsageHour" DROP CONSTRAINT away`
    await gateway.prisma.apiKeyUsageHour.createMany({
      data: hours
        .filter((hour) => hour < daysAgo(0))
        .map((hour, i) => ({
          keyId: row.id,
          name: row.name,
          hour,
          requests: 100 + i,
          refusals: 12,
          cost: 110,
          outcomes: { rate_limited: 10, invalid_request: 2 },
        })),
    })
    await gateway.prisma.$executeRawUnsafe(
      `ALTER TABLE "ApiKeyUsageHour" ADD CONSTRAINT away CHECK ("keyId" <> ${row.id}) NOT VALID`,
    )
    await remembers(key)
    await visit()
    await isRead()
    await page.locator('#plot rect.requests').nth(28).click()
    await expect.poll(() => page.locator('#days-title').textContent()).toBe('Per hour')
    await expect.poll(() => page.locator('#plot rect.requests').count()).toBe(24)
    await page.mouse.move(0, 0)
    const yesterday = new Intl.DateTimeFormat('en-GB', { timeZone: 'UTC', dateStyle: 'full' }).format(daysAgo(1))
    const first = 100 + 48
    const requests = (24 * (first + first + 23)) / 2
    expect(await legend()).toEqual([
      yesterday,
      requests.toLocaleString('en'),
      `240${Math.round(240_000 / requests) / 10} %`,
      `48${Math.round(48_000 / requests) / 10} %`,
      '2,640',
    ])
    await page.getByText('The same figures as a table').click()
    expect(await page.locator('#part-name').textContent()).toBe('Hour')
    expect((await rows())[0]).toEqual(['23:00', '171', '10', '2', '110'])
    expect((await rows())[23]).toEqual(['00:00', '148', '10', '2', '110'])
    expect(await page.locator('#outcomes h3').textContent()).toBe(`Errors: ${yesterday}`)
    expect(await page.locator('#ranges [aria-pressed="true"]').count()).toBe(0)
    expect(await barriers(page)).toEqual([])
    await look('hours')
    await page.getByRole('button', { name: 'Back to days' }).press('Enter')
    expect(await page.locator('#days-title').textContent()).toBe('Per day')
    expect(await page.locator('#plot rect.requests').count()).toBe(30)
    expect(await page.evaluate(() => document.activeElement?.id)).toBe('days-title')
    await page.getByRole('button', { name: '7 days' }).click()
    expect(await page.locator('#plot rect.requests').count()).toBe(7)
    // With the keyboard, the way leads through the table. The day of which a part is left says so. In its last hour, a day ends
    // 72 hours that are three whole days.
    const days = new Date().getUTCHours() === 23 ? [0, 1, 2] : [0, 1, 2, 3]
    expect(await page.locator('#rows button').allTextContents()).toEqual(days.map((ago) => dateOf(daysAgo(ago))))
    await page.getByRole('button', { name: dateOf(daysAgo(days.length - 1)) }).press('Enter')
    expect(await page.evaluate(() => document.activeElement?.id)).toBe('days-title')
    const left = 24 - (await rows()).length
    expect(await note()).toBe(left ? `Its hours before ${(await rows()).at(-1)?.[0]} are no longer kept apart. ` : '')
    // Older days have none.
    await page.getByRole('button', { name: '30 days' }).click()
    await page.locator('#plot rect.requests').nth(10).click()
    expect(await page.locator('#days-title').textContent()).toBe('Per day')
    expect(asked.filter((path) => path.includes('usage'))).toEqual([
      '/quota/usage?days=30',
      '/quota/usage/hours?hours=72',
    ])
    // What is shown is read again, and the rest when it is shown.
    await page.getByRole('button', { name: 'Refresh' }).click()
    await expect.poll(() => asked.filter((path) => path.includes('usage')).length).toBe(3)
    await page.getByRole('button', { name: dateOf(daysAgo(2)) }).click()
    await expect.poll(() => asked.filter((path) => path.includes('usage')).at(-1)).toBe('/quota/usage/hours?hours=72')
  })

  test('reads nothing twice that is being read, and says of each what was not read', async () => {
    const { key, row } = await createUsed()
    await leaveOut(row)
    await remembers(key)
    const releases: (() => void)[] = []
    await page.route(`${baseUrl}/quota/usage?days=*`, async (route) => {
      await new Promise<void>((resolve) => releases.push(resolve))
      await route.continue()
    })
    await page.route(`${baseUrl}/quota/usage/hours*`, (route) => route.fulfill({ status: 503, json: {} }))
    await visit()
    await expect.poll(note).toBe('Reading …')
    await page.getByRole('button', { name: '7 days' }).click()
    await page.getByRole('button', { name: '30 days' }).click()
    await expect.poll(() => releases.length).toBe(1)
    releases[0]?.()
    await isRead()
    // While more days are read, hours are.
    await page.getByRole('button', { name: '90 days' }).click()
    await expect.poll(note).toBe('Reading …')
    expect((await legend())[0]).toBe('Last 30 days')
    await page.locator('#plot rect.requests').nth(28).click()
    await expect.poll(note).toContain('the API returned 503. Press Refresh.')
    releases[1]?.()
    await page.getByRole('button', { name: 'Back to days' }).click()
    await expect.poll(() => page.locator('#plot rect.requests').count()).toBe(90)
    expect(await note()).toBe('')
    expect(asked.filter((path) => path.includes('usage'))).toEqual([
      '/quota/usage?days=30',
      '/quota/usage?days=90',
      '/quota/usage/hours?hours=72',
    ])
    await page.unroute(`${baseUrl}/quota/usage/hours*`)
    await page.locator('#plot rect.requests').nth(88).click()
    await expect.poll(note).toBe('No request was counted on this day.')
  })

  test('says so when nothing was used', async () => {
    const { key, row } = await gateway.createKey({ name: 'New shop' })
    await leaveOut(row)
    await remembers(key)
    await visit()
    await expect.poll(note).toMatch(/^No request was counted in the last 30 days\./)
    expect(await page.locator('#days').isVisible()).toBe(false)
    expect(await page.locator('#facts dd').last().textContent()).toBe('never')
    expect(await barriers(page)).toEqual([])
    await look('empty')
  })

  test('shows a banned key its ban and windows, sends nothing that would be refused, and goes on when the ban is over', async () => {
    const { key, row } = await createUsed({ bannedUntil: new Date(Date.now() + 3_600_000) })
    await remembers(key)
    await page.clock.install()
    await visit()
    await expect.poll(note).toBe('The key is banned. What it has used can be read when the ban is over.')
    const ban = page.locator('#ban')
    expect(await ban.textContent()).toMatch(/^This key is banned until .+ \(in\s(60|59)\smin\)\. /)
    expect(await ban.getByRole('link').evaluate((link) => (link as HTMLAnchorElement).href)).toBe(
      `${baseUrl}/docs#bans`,
    )
    expect(await bars()).toEqual(['300 of 300 left this minute', '10,000 of 10,000 left this day'])
    expect(await page.locator('#days').isVisible()).toBe(false)
    await page.getByRole('button', { name: 'Refresh' }).click()
    await expect.poll(() => asked.length).toBe(2)
    expect(asked).toEqual(['/quota', '/quota'])
    await look('banned')
    expect(await barriers(page)).toEqual([])
    await gateway.prisma.apiKey.update({ where: { id: row.id }, data: { bannedUntil: new Date() } })
    await page.clock.fastForward('01:00:01')
    await isRead()
    expect(await ban.isVisible()).toBe(false)
    expect(await note()).toBe('')
  })

  test('shows what is known, and why there is no more, if the key is banned while the page reads', async () => {
    const { key, row } = await createUsed()
    await remembers(key)
    await page.route(`${baseUrl}/quota/usage*`, async (route) => {
      await gateway.prisma.apiKey.update({
        where: { id: row.id },
        data: { bannedUntil: new Date(Date.now() + 3_600_000) },
      })
      await route.continue()
    })
    await visit()
    await expect.poll(note).toMatch(/^The API refused to say what the key has used: .*banned/)
    await page.locator('#ban').waitFor()
    expect(await page.locator('#key-name').textContent()).toBe('Corner shop')
  })

  test('does not use up a window: with nothing left, it keeps what was read, and reads again after the reset', async () => {
    const { key } = await createUsed({ plan: 'Enterprise', minuteLimit: 1, dayLimit: 50 })
    await remembers(key)
    await page.clock.install()
    await visit()
    await isRead()
    await expect.poll(bars).toEqual(['0 of 1 left this minute', '49 of 50 left this day'])
    await page.getByRole('button', { name: 'Refresh' }).click()
    await expect.poll(note).toContain('Nothing is left of this minute.')
    expect(await page.locator('#plot svg').isVisible()).toBe(true)
    expect(asked.filter((path) => path.includes('usage'))).toHaveLength(1)
    const before = asked.length
    await page.clock.fastForward('01:01')
    await expect.poll(() => asked.length).toBeGreaterThan(before)
    expect(asked.at(before)).toBe('/quota')
  })

  test('shows nothing of anybody for a key that is unknown, revoked or expired, and says what may be wrong', async () => {
    const revoked = await createUsed({ revokedAt: new Date(0) })
    const expired = await createUsed({ expiresAt: new Date(Date.now() - 1) })
    await visit()
    for (const key of ['petstore_wrong', revoked.key, expired.key]) {
      await pastes(key)
      await expect
        .poll(() => page.locator('#ask-message').textContent())
        .toBe('This key is not valid. It may be mistyped, revoked or expired. Check that you copied all of it.')
      expect(await shown()).toBe('')
      expect(await page.evaluate(() => localStorage.length)).toBe(0)
      await pastes('')
    }
    await pastes(revoked.key)
    await page.locator('#ask-message.bad').waitFor()
    expect(await barriers(page)).toEqual([])
    await look('not-valid')
    expect(asked.every((path) => path === '/quota')).toBe(true)
  })

  test('shows nothing more of a key once it is revoked', async () => {
    const { key, row } = await createUsed()
    await remembers(key)
    await visit()
    await isRead()
    await gateway.prisma.apiKey.update({ where: { id: row.id }, data: { revokedAt: new Date() } })
    await page.getByRole('button', { name: 'Refresh' }).click()
    await expect.poll(() => page.locator('#ask-message').textContent()).toContain('This key is not valid.')
    expect(await shown()).toBe('')
    expect(await page.locator('header .key').textContent()).toBe('Check key')
    for (const trace of ['Corner shop', row.prefix, '1,000']) expect(await page.content()).not.toContain(trace)
    await page.reload()
    await expect.poll(() => page.locator('#ask-message').textContent()).toContain('This key is not valid.')
  })

  test('says so if the API fails or cannot be reached, and goes on when it can', async () => {
    const { key } = await createUsed()
    await remembers(key)
    const problem = () => page.locator('#problem p').textContent()
    await page.route(`${baseUrl}/quota*`, (route) => route.fulfill({ status: 503, json: {} }))
    await visit()
    await expect.poll(problem).toBe('The key could not be checked: the API returned 503. Try again.')
    expect(await shown()).toBe('')
    expect(await page.locator('#ask').isVisible()).toBe(false)
    await look('failing')
    expect(await barriers(page)).toEqual([])
    await page.unroute(`${baseUrl}/quota*`)
    await page.route(`${baseUrl}/quota/usage*`, (route) => route.abort())
    await page.getByRole('button', { name: 'Try again' }).click()
    await expect.poll(note).toContain('the API does not answer. Press Refresh.')
    expect(await bars()).toHaveLength(2)
    await page.unroute(`${baseUrl}/quota/usage*`)
    await page.getByRole('button', { name: 'Refresh' }).click()
    await isRead()
    await page.route(`${baseUrl}/quota*`, (route) => route.abort())
    await page.getByRole('button', { name: 'Refresh' }).click()
    await expect.poll(problem).toContain('the API does not answer. Try again. Below is what was known before.')
    expect(await page.locator('#plot svg').isVisible()).toBe(true)
  })

  test('shares the key with the reference, also while both are open, and each links to the other', async () => {
    const { key } = await createUsed()
    const reference = await context.newPage()
    await reference.goto(`${baseUrl}/docs`)
    await visit()
    await pastes(key)
    await isRead()
    await expect.poll(() => reference.locator('header .key').textContent()).toMatch(/^Pro · /)
    await reference.locator('header .key').click()
    await reference.getByRole('link', { name: 'What it has used' }).click()
    await reference.locator('#plot svg').waitFor()
    await reference.getByRole('link', { name: 'Reference' }).click()
    await expect.poll(() => reference.locator('header .key').textContent()).toMatch(/^Pro · /)
    await reference.locator('header .key').click()
    await reference.getByRole('button', { name: 'Remove key' }).click()
    await field().waitFor()
    expect(await shown()).toBe('')
    expect(await page.content()).not.toContain('Corner shop')
    await reference.keyboard.press('Escape')
    await reference.getByRole('link', { name: 'Usage of a key' }).click()
    await field(reference).waitFor()
  })

  test('shows nothing of one key beside another, even if the other may not be read', async () => {
    const first = await createUsed()
    const second = await gateway.createKey({ name: 'Other shop', bannedUntil: new Date(Date.now() + 3_600_000) })
    await remembers(first.key)
    await visit()
    await isRead()
    await page.locator('header .key').click()
    await page.getByLabel('API key', { exact: true }).fill(second.key)
    await page.getByRole('button', { name: 'Use key' }).click()
    await expect.poll(() => page.locator('#key-name').textContent()).toBe('Other shop')
    await expect.poll(note).toContain('The key is banned.')
    expect(await rows()).toEqual([])
    expect(await page.locator('#plot, #legend').allTextContents()).toEqual(['', ''])
    expect(await page.content()).not.toContain('Corner shop')
  })

  test('keeps the key where the reference keeps it, and nowhere else', async () => {
    const { key } = await createUsed()
    await visit()
    await pastes(key)
    await isRead()
    await page.getByRole('button', { name: '7 days' }).click()
    expect(await page.evaluate(() => ({ ...localStorage }))).toEqual({ 'petstore-key': key })
    expect(await page.evaluate(() => sessionStorage.length + document.cookie.length)).toBe(0)
    expect(page.url()).toBe(`${baseUrl}/usage`)
    expect(await page.content()).not.toContain(key)
    expect(await page.locator('#ask-text').inputValue()).toBe('')
    await page.locator('header .key').click()
    await page.getByRole('button', { name: 'Remove key' }).click()
    expect(await page.evaluate(() => localStorage.length)).toBe(0)
    expect(await shown()).toBe('')
  })

  test('shows markup in the name of a key as text', async () => {
    const name = '<img src=x onerror=alert(1)>'
    const { key } = await createUsed({ name })
    await remembers(key)
    await visit()
    await isRead()
    expect(await page.locator('#key-name').textContent()).toBe(name)
    expect(await page.locator('main img').count()).toBe(0)
  })

  test('can be used with the keyboard only', async () => {
    const { key } = await createUsed()
    await visit()
    const reach = async (name: string) => {
      const focused = () =>
        page.evaluate(() => {
          const { activeElement: one } = document
          return (one as HTMLInputElement)?.labels?.[0]?.textContent ?? one?.textContent?.trim()
        })
      for (let presses = 0; (await focused()) !== name; presses++) {
        expect(presses, name).toBeLessThan(12)
        await page.keyboard.press('Tab')
      }
    }
    await reach('Skip to content')
    await page.keyboard.press('Enter')
    await reach('Your API key')
    await page.keyboard.type(key)
    await page.keyboard.press('Enter')
    await isRead()
    // The focus does not fall back to the top of the page.
    expect(await page.evaluate(() => document.activeElement?.id)).toBe('usage')
    await reach('Refresh')
    await reach('7 days')
    await page.keyboard.press('Enter')
    await expect.poll(() => page.locator('#plot rect.requests').count()).toBe(7)
    await reach('The same figures as a table')
    await page.keyboard.press('Enter')
    expect(await page.locator('#rows tr').count()).toBe(7)
    expect(await page.locator('#rows').isVisible()).toBe(true)
  })

  test.each([
    ['light', 1280],
    ['dark', 1280],
    ['light', 375],
    ['dark', 375],
    ['light', 320],
  ] as const)('%s at %i pixels has no barriers, and nothing wider than the page', async (colorScheme, wide) => {
    const name = `${'Pet shops of the northern coast '.repeat(3)}${'x'.repeat(60)}`.slice(0, 100)
    const limits = { minuteLimit: 2_000_000_000, dayLimit: 2_000_000_000 }
    const expiresAt = new Date(Date.now() + 9.5 * DAY_MS)
    const { key } = await createUsed({ name, owner: name, expiresAt, plan: 'Enterprise', ...limits })
    await page.emulateMedia({ colorScheme })
    await page.setViewportSize({ width: wide, height: 800 })
    await visit()
    expect(await barriers(page)).toEqual([])
    expect(await width()).toBe(wide)
    await look(`no-key-${colorScheme}-${wide}`)
    await pastes(key)
    await isRead()
    await page.getByRole('button', { name: '90 days' }).click()
    await page.getByText('The same figures as a table').click()
    expect(await barriers(page)).toEqual([])
    expect(await width()).toBe(wide)
    // The names of facts are on one line each.
    const heights = await page.locator('#facts dt').evaluateAll((all) => all.map((one) => one.clientHeight))
    expect(new Set(heights).size).toBe(1)
    expect(await page.locator('#plot svg').evaluate((svg) => svg.getBoundingClientRect().right)).toBeLessThan(wide)
    await look(`table-${colorScheme}-${wide}`)
    await page.getByText('The same figures as a table').click()
    await page.evaluate(() => scrollTo(0, 0))
    await look(`${colorScheme}-${wide}`)
    await page.locator('header .key').click()
    expect(await barriers(page, '#key')).toEqual([])
  })

  test('draws the plot again when the page becomes narrower', async () => {
    const { key } = await createUsed()
    await remembers(key)
    await visit()
    await isRead()
    await page.setViewportSize({ width: 375, height: 800 })
    await expect
      .poll(() => page.locator('#plot svg').evaluate((svg) => svg.getBoundingClientRect().right))
      .toBeLessThan(375)
    expect(await width()).toBe(375)
  })

  test('says what to do without JavaScript', async () => {
    const plain = await browser.newPage({ javaScriptEnabled: false })
    onTestFinished(() => plain.close())
    await plain.goto(`${baseUrl}/usage`)
    expect(await plain.locator('main').textContent()).toContain(
      `curl -H "Authorization: Bearer $PETSTORE_KEY" ${baseUrl}/quota`,
    )
    expect(await plain.locator('button:visible, input:visible').count()).toBe(0)
  })

  test('loads at most 30 KB with the figures of a key: itself, one style sheet, one script and the icon', async () => {
    const { key } = await createUsed({}, 90)
    await remembers(key)
    const session = await context.newCDPSession(page)
    await session.send('Network.enable')
    let bytes = 0
    session.on('Network.loadingFinished', ({ encodedDataLength }) => {
      bytes += encodedDataLength
    })
    await page.goto(`${baseUrl}/usage`, { waitUntil: 'networkidle' })
    await isRead()
    expect(bytes).toBeGreaterThan(5_000)
    expect(bytes).toBeLessThanOrEqual(30_000)
    const loaded = await page.evaluate(() =>
      performance.getEntriesByType('resource').map(({ name }) => new URL(name).pathname),
    )
    expect([...new Set(loaded)].sort()).toEqual([
      '/v1/docs/favicon.svg',
      '/v1/docs/usage.css',
      '/v1/docs/usage.js',
      '/v1/quota',
      '/v1/quota/usage',
    ])
  })
})
