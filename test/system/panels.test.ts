import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFile, readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { promisify } from 'node:util'
import type { Browser, Locator, Page, Response } from 'playwright-core'
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { emptyStore, times } from '../support/calls.js'
import { chromiumPath } from '../support/chromium.js'
import { type Gateway, openGateway } from '../support/gateway.js'
import { filesIn, GuideProject } from '../support/guide-project.js'
import { guide } from '../support/guides.js'
import { freePort } from '../support/ports.js'
import { collectProblems, launch } from './browser.js'

// The panels of the guide to admin interfaces, built with Vite and used in a browser as the staff of a shop uses them.

const vite = resolve('test/lab/panels/node_modules/vite/bin/vite.js')
const main = `import { createRoot } from 'react-dom/client'
import App from './App'

const root = document.getElementById('root')
if (root) createRoot(root).render(<App />)
`
const html = `<!doctype html>
<html lang="en">
  <head><title>Panel</title><link rel="icon" href="data:," /></head>
  <body><div id="root"></div><script type="module" src="/src/main.tsx"></script></body>
</html>
`

/** A list of 34 pages. */
const PETS = 337
const nameOf = (number: number) => `Pet ${String(number).padStart(3, '0')}`

/** Pets in two of twelve categories by turns. The first one has an order. */
async function fillStore({ prisma }: Gateway) {
  await emptyStore(prisma)
  const names = ['Mice', 'Rats', ...times(9, (i) => `Birds ${i}`), 'Zebras']
  const categories = await prisma.category.createManyAndReturn({ data: names.map((name) => ({ name })) })
  const pets = await prisma.pet.createManyAndReturn({
    data: times(PETS, (i) => ({ name: nameOf(i + 1), categoryId: categories[i % 2]?.id ?? 0n })),
  })
  const ids = pets.map(({ id }) => id)
  await prisma.inventoryItem.updateMany({ where: { petId: { in: ids.slice(0, 3) } }, data: { quantity: 7 } })
  await prisma.order.create({ data: { petId: ids[0] ?? 0n, quantity: 41 } })
  return ids
}

/** The files of a panel, from its part of the guide. */
async function createProject(name: string, baseUrl: string) {
  const project = new GuideProject(`test/lab/panels/${name}`, baseUrl)
  const parts = guide('admin-interfaces').split(/^## /m)
  const shown = ['The key of a panel', name].flatMap((title) => parts.filter((part) => part.startsWith(`${title}\n`)))
  await project.create([...filesIn(shown.join('')), ['src/main.tsx', main], ['index.html', html]])
  for (const file of ['rows', name]) await copyFile(`docs/examples/${file}.ts`, `${project.folder}/src/${file}.ts`)
  return project
}

/** Builds a panel, and serves it with a key. */
async function servePanel({ folder }: GuideProject, key: string) {
  // Without that of the tests, in which React would be one for development.
  const { NODE_ENV: _, ...environment } = process.env
  await promisify(execFile)(process.execPath, [vite, 'build'], { cwd: folder, env: environment })
  const port = await freePort()
  const server = spawn(process.execPath, [vite, 'preview', '--host=127.0.0.1', `--port=${port}`, '--strictPort'], {
    cwd: folder,
    env: { ...environment, PETSTORE_KEY: key },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  await once(server.stdout, 'data')
  return { url: `http://127.0.0.1:${port}`, stop: () => server.kill() }
}

/** Where a panel has what staff looks for. */
interface Panel {
  /** The text that says how many rows there are, or how many pages, for so many pets. */
  total(page: Page): Locator
  totals: Record<number, string>
  last(page: Page): Locator
  message(page: Page): Locator
  filterByStatus(page: Page, status: string): Promise<void>
  press(page: Page, button: 'Mark as sold' | 'Delete'): Promise<void>
  startCreating(page: Page): Promise<void>
  categories(page: Page): Locator
  chooseCategory(page: Page, name: string): Promise<void>
  save(page: Page): Promise<void>
}

const panels: Record<string, Panel> = {
  'react-admin': {
    total: (page) => page.locator('.MuiTablePagination-displayedRows'),
    totals: { 1: '1-1 of 1', [PETS]: `1-10 of ${PETS}` },
    last: (page) => page.getByRole('button', { name: 'Go to page 34' }),
    message: (page) => page.locator('.MuiSnackbarContent-message'),
    async filterByStatus(page, status) {
      await page.getByRole('button', { name: 'Add filter' }).click()
      await page.getByRole('menuitemcheckbox', { name: 'Status' }).click()
      await page.getByRole('combobox', { name: 'Status' }).click()
      await page.getByRole('option', { name: status }).click()
    },
    async press(page, button) {
      await page.getByRole('button', { name: button }).click()
      await page.getByRole('button', { name: 'Confirm' }).click()
    },
    startCreating: (page) => page.getByRole('link', { name: 'Create' }).click(),
    categories: (page) => page.getByRole('combobox', { name: 'Category' }),
    async chooseCategory(page, name) {
      const option = page.getByRole('option', { name })
      if (!(await option.isVisible())) await page.getByRole('combobox', { name: 'Category' }).click()
      await option.click()
    },
    save: (page) => page.getByRole('button', { name: 'Save' }).click(),
  },
  refine: {
    total: (page) => page.getByRole('button', { name: /^Last/ }),
    totals: { 1: 'Last (1)', [PETS]: 'Last (34)' },
    last: (page) => page.getByRole('button', { name: /^Last/ }),
    message: (page) => page.getByRole('alert'),
    filterByStatus: async (page, status) => void (await page.getByLabel('Status').selectOption(status)),
    press: (page, button) => page.getByRole('button', { name: button }).click(),
    startCreating: async () => {},
    categories: (page) => page.getByPlaceholder('Search categories'),
    chooseCategory: async (page, name) => void (await page.getByLabel('Category').selectOption(name)),
    save: (page) => page.getByRole('button', { name: /^(Save|Create)/ }).click(),
  },
}

// Needs Chromium: CHROMIUM_PATH, or chromium or google-chrome on PATH.
describe.skipIf(!chromiumPath).each(Object.entries(panels))('the panel of %s', (name, panel) => {
  let gateway: Gateway
  let browser: Browser
  let project: GuideProject
  let served: Awaited<ReturnType<typeof servePanel>>
  let ids: bigint[]
  let page: Page
  /** What the panel has asked the service, in order. */
  let asked: string[]
  beforeAll(async () => {
    const port = await freePort()
    gateway = await openGateway({ env: { BASE_URL: `http://127.0.0.1:${port}/v1` } })
    await gateway.listen(port)
    browser = await launch(port)
    project = await createProject(name, gateway.config.BASE_URL)
    served = await servePanel(project, gateway.key)
  })
  afterAll(async () => {
    served?.stop()
    await browser?.close()
    await gateway?.close()
  })
  beforeEach(async () => {
    ids = await fillStore(gateway)
    page = await browser.newPage({ viewport: { width: 1280, height: 900 } })
    page.setDefaultTimeout(60_000)
    page.on('dialog', (dialog) => dialog.accept())
    const problems = collectProblems(page, '127.0.0.1')
    asked = []
    page.on('request', (request) => {
      const [, path] = decodeURIComponent(request.url()).split('/api/')
      if (path) asked.push(`${request.method()} ${path}`)
    })
    onTestFinished(async () => {
      await page.close()
      // Chromium logs each refusal, and react-admin its message.
      expect(problems.filter((problem) => !/^error: (Failed to load resource|\w+: )/.test(problem))).toEqual([])
    })
    await page.goto(served.url)
    await shows(...times(10, (i) => i + 1))
    asked.length = 0
  })

  const rows = () => page.locator('tbody tr')
  const row = (number: number) => rows().filter({ hasText: nameOf(number) })
  /** Waits for the rows of these pets, and for no others. */
  const shows = (...numbers: number[]) =>
    expect
      .poll(async () => (await rows().allTextContents()).map((text) => /Pet \d{3}/.exec(text)?.[0]))
      .toEqual(numbers.map(nameOf))
  const header = (column: string) =>
    page.getByRole('columnheader', { name: new RegExp(`^(sort by )?${column}`, 'i') }).getByRole('button')
  /** Clicks the header of a column, and waits until the list is read in its order: the next click is one in the other. */
  async function sort(column: string, direction: string) {
    const read = page.waitForResponse((response) => response.url().includes(`sort=${column}&direction=${direction}`))
    await header(column).click()
    await read
  }
  const nameField = () => page.getByRole('textbox', { name: /^Name/ })
  const says = (sentence: string | RegExp) =>
    expect.poll(() => panel.message(page).allTextContents()).toContainEqual(expect.stringMatching(sentence))
  /** The status of what the form sends. */
  async function save() {
    const answer = page.waitForResponse((response) => response.request().method() === 'PATCH')
    await panel.save(page)
    return (await answer).status()
  }
  /** Types the beginning of a category's name, and chooses the category from what is found. */
  async function choose(typed: string, category: string) {
    const isSearch = (response: Response) => response.url().includes(`/categories?search=${typed}&sort=name`)
    // Again if the form was still getting its values: react-admin shows them in place of what was typed.
    const search = async () => {
      const found = page.waitForResponse(isSearch, { timeout: 5_000 }).then(
        (response) => response.status(),
        () => 'nothing was searched',
      )
      await panel.categories(page).fill('')
      await panel.categories(page).fill(typed)
      return found
    }
    await expect.poll(search).toBe(200)
    await panel.chooseCategory(page, category)
  }
  /** Opens the form of a pet. */
  async function edit(number: number) {
    await row(number).getByText(nameOf(number)).click()
    await expect.poll(() => nameField().inputValue()).toBe(nameOf(number))
    if (name === 'react-admin') await expect.poll(() => panel.categories(page).inputValue()).not.toBe('')
  }
  const lists = () => asked.filter((request) => request.startsWith('GET pets?'))
  const stored = (number: number) =>
    gateway.prisma.pet.findUniqueOrThrow({ where: { id: ids[number - 1] ?? 0n }, include: { category: true } })

  test('compiles with strict', async () => {
    expect(await project.compile()).toBe('')
  })

  test('a list has related objects, orders and its total, and its last page takes one request', async () => {
    expect(await row(2).textContent()).toMatch(/Pet 002\W*Rats\W*available\W*7/)
    expect(await panel.total(page).textContent()).toBe(panel.totals[PETS])
    await panel.last(page).click()
    await shows(331, 332, 333, 334, 335, 336, 337)
    expect(lists()).toEqual([expect.stringMatching(/direction=desc&limit=7&/)])

    await sort('name', 'asc')
    await shows(...times(10, (i) => i + 1))
    await sort('name', 'desc')
    await shows(...times(10, (i) => PETS - i))
    asked.length = 0
    await panel.last(page).click()
    await shows(7, 6, 5, 4, 3, 2, 1)
    expect(lists()).toEqual([expect.stringMatching(/sort=name&direction=asc&limit=7&/)])
  })

  test('a header can be clicked only if the list has its order', async () => {
    for (const column of ['id', 'name']) expect(await header(column).isEnabled()).toBe(true)
    for (const column of ['category', 'status']) {
      const clickable = await header(column).evaluateAll((all) =>
        all.filter((one) => !(one as HTMLButtonElement).disabled),
      )
      expect(clickable).toEqual([])
    }
  })

  test('search finds what begins with what is typed, from any page, together with a filter', async () => {
    await gateway.prisma.pet.update({ where: { id: ids[299] ?? 0n }, data: { status: 'sold' } })
    await panel.last(page).click()
    await shows(331, 332, 333, 334, 335, 336, 337)
    const search = page.getByLabel('Search', { exact: true })
    await search.fill(' ')
    await shows(...times(10, (i) => i + 1))
    await search.fill('')
    await search.pressSequentially('pet 30')
    await shows(300, 301, 302, 303, 304, 305, 306, 307, 308, 309)
    await panel.filterByStatus(page, 'sold')
    await shows(300)
    await expect.poll(() => panel.total(page).textContent()).toBe(panel.totals[1])
  })

  test('a form saves what was changed, and nothing else', async () => {
    await edit(6)
    await nameField().fill('Pet 600')
    const sent = page.waitForRequest((request) => request.method() === 'PATCH')
    expect(await save()).toBe(200)
    if (name === 'react-admin') expect((await sent).postDataJSON()).toEqual({ name: 'Pet 600' })
    expect(await stored(6)).toMatchObject({ name: 'Pet 600', category: { name: 'Rats' } })
    await page.goto(served.url)
    await page.reload()
    await edit(7)
    await choose('ra', 'Rats')
    expect(await save()).toBe(200)
    expect(await stored(7)).toMatchObject({ name: 'Pet 007', category: { name: 'Rats' } })
  })

  test('a form saves nothing if somebody else was faster, and a sentence says what to do', async () => {
    await edit(5)
    await nameField().fill('Zoe')
    await choose('ra', 'Rats')
    await gateway.patch(`/pets/${ids[4]}`, { status: 'pending' })
    expect(await save()).toBe(412)
    await says(/^Somebody else has changed or deleted this since you opened it\. Nothing was saved/)
    await save()
    expect(await stored(5)).toMatchObject({ name: 'Pet 005', status: 'pending', category: { name: 'Mice' } })

    await page.goto(served.url)
    await page.reload()
    await edit(5)
    await nameField().fill('Zoe')
    expect(await save()).toBe(200)
    expect(await stored(5)).toMatchObject({ name: 'Zoe', status: 'pending', category: { name: 'Mice' } })
  })

  test('a form that is opened again does not bring back what somebody else has changed', async () => {
    for (const number of [5, 6]) {
      await edit(number)
      if (name === 'react-admin') await page.goBack()
    }
    await gateway.patch(`/pets/${ids[4]}`, { name: 'Yara' })
    const read = page.waitForResponse((response) => response.url().endsWith(`/pets?id=${ids[4]}`))
    await row(5).getByText('Pet 005').click()
    await read
    await expect.poll(() => nameField().inputValue()).toBe('Yara')
    await choose('ra', 'Rats')
    await save()
    await expect.poll(() => stored(5)).toMatchObject({ name: 'Yara', category: { name: 'Rats' } })
  })

  test('a form creates, and shows what the service refuses, which is sent once', async () => {
    await panel.startCreating(page)
    // The last one, before anything was searched.
    await panel.chooseCategory(page, 'Zebras')
    await nameField().fill('x'.repeat(101))
    await panel.save(page)
    await says(/^name is .* \(101 characters\)/)
    expect(asked.filter((request) => request === 'POST pets')).toHaveLength(1)
    await nameField().fill('Ada')
    await panel.save(page)
    await expect
      .poll(() => gateway.prisma.pet.findFirst({ where: { name: 'Ada' }, include: { category: true } }))
      .toMatchObject({ category: { name: 'Zebras' } })
  })

  test('many are changed by one request, and deleted by one, all of them or none', async () => {
    for (const number of [2, 4]) await row(number).getByRole('checkbox').check()
    await panel.press(page, 'Mark as sold')
    await expect.poll(async () => [await row(2).textContent(), await row(4).textContent()].join()).toMatch(/sold.*sold/)
    expect(asked.filter((request) => !request.startsWith('GET'))).toEqual(['PATCH pets/batch'])

    await expect.poll(() => rows().getByRole('checkbox', { checked: true }).count()).toBe(0)
    for (const number of [2, 4]) await row(number).getByRole('checkbox').check()
    await row(1).getByRole('checkbox').check()
    await panel.press(page, 'Delete')
    await says(/^Pet \d+ /)
    expect(await gateway.prisma.pet.count()).toBe(PETS)
    await row(1).getByRole('checkbox').uncheck()
    await panel.press(page, 'Delete')
    await expect.poll(() => row(2).count()).toBe(0)
    expect(await gateway.prisma.pet.count()).toBe(PETS - 2)
    expect(asked.filter((request) => !request.startsWith('GET'))).toEqual([
      'PATCH pets/batch',
      'POST graphql',
      'POST graphql',
    ])
  })

  // That of refine has neither orders nor an export.
  if (name !== 'react-admin') return

  test('a pet shows its orders; a pet that has some is not deleted, and the message says why', async () => {
    await row(1).getByText('Pet 001').click()
    await expect.poll(() => rows().allTextContents()).toEqual([expect.stringMatching(/41/)])
    await expect.poll(() => panel.categories(page).inputValue()).toBe('Mice')
    expect(asked).toEqual(expect.arrayContaining([expect.stringMatching(/^GET store\/orders\?petId=\d+&/)]))
    await panel.press(page, 'Delete')
    await says(/order/)
    expect(asked.filter((request) => request.startsWith('DELETE'))).toHaveLength(1)
    expect((await stored(1)).name).toBe('Pet 001')
  })

  test('an export has all rows, and stock is filtered and sorted by quantity', async () => {
    const download = page.waitForEvent('download')
    await page.getByRole('button', { name: 'Export' }).click()
    const file = await readFile(await (await download).path(), 'utf8')
    expect(file.trim().split('\n')).toHaveLength(1 + PETS)
    expect(lists()).toHaveLength(4)

    await page.getByRole('menuitem', { name: 'Stock' }).click()
    const filtered = page.waitForResponse(/maxQuantity=7&/)
    await page.getByLabel('Max quantity').fill('7')
    await filtered
    await sort('quantity', 'asc')
    await sort('quantity', 'desc')
    await shows(3, 2, 1, ...times(7, (i) => PETS - i))
    await row(2).getByText('Pet 002').click()
    await page.getByRole('link', { name: 'Pet 002' }).waitFor()
    expect(await page.getByRole('button').allTextContents()).not.toContain('Delete')
    await page.getByRole('spinbutton', { name: /^Quantity/ }).fill('8')
    expect(await save()).toBe(200)
  })

  test('what somebody else has deleted cannot be opened, and the message says so', async () => {
    await gateway.prisma.pet.delete({ where: { id: ids[2] ?? 0n } })
    await row(3).getByText('Pet 003').click()
    await says('This was deleted.')
    await expect.poll(() => row(3).count()).toBe(0)
  })

  test('an order is opened, changed and completed, and those of a pet are found', async () => {
    await page.getByRole('menuitem', { name: 'Orders' }).click()
    await page.getByRole('button', { name: 'Add filter' }).click()
    await page.getByRole('menuitemcheckbox', { name: 'Pet' }).click()
    await page.getByRole('combobox', { name: 'Pet' }).fill('pet 001')
    // The only order is shown before, too; the list opens again when the filter comes.
    const filtered = page.waitForResponse(/petId=/)
    await page.getByRole('option', { name: 'Pet 001' }).click()
    await filtered
    await shows(1)
    await row(1).getByText('Pet 001').click()
    await page.getByLabel('Ship date', { exact: true }).fill('2026-12-01T10:00')
    await page.getByLabel('Complete', { exact: true }).check()
    expect(await save()).toBe(200)
    expect(await gateway.prisma.order.findFirst()).toMatchObject({
      quantity: 41,
      complete: true,
      shipDate: expect.any(Date),
    })
  })
})
