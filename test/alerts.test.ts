import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { catalogue } from '../schema/kit/errors.js'
import { type Gateway, openGateway, testRedisUrl } from './support/gateway.js'
import { anchors, pages } from './support/markdown.js'

interface Rule {
  record?: string
  alert?: string
  expr: string
  annotations: Record<string, string>
}

const rules = (parse(readFileSync('docs/alerts.yml', 'utf8')).groups as { rules: Rule[] }[]).flatMap(
  (group) => group.rules,
)
const alerts = rules.filter(({ alert }) => alert)
const recorded = rules.flatMap(({ record }) => record ?? [])
const dashboard = JSON.parse(readFileSync('docs/grafana.json', 'utf8'))
const panels = dashboard.panels as { id: number; type: string; title: string; targets?: { expr: string }[] }[]
const shown = panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr))
const expressions = [
  ...rules.map(({ expr }) => expr),
  ...shown,
  ...dashboard.annotations.list.map(({ expr }: Rule) => expr),
  dashboard.templating.list[1].query.query,
]

const METRIC = /\b(up|(?:petstore|process|nodejs)_\w+)\b(?!")/g
/** A metric, or functions around it, with what selects some of its series. */
const SELECTED = /\b(\w+)\{([^}]*)\}/g
const SELECTOR = /(\w+)\s*(?:=~|!~|!=|=)\s*"([^"]*)"/g
const GROUPED = /\b(?:by|on)\s*\(([^)]*)\)/g
/** What Prometheus adds. */
const ADDED = ['instance', 'job', 'le']
const baseOf = (metric: string) => metric.replace(/_(bucket|count|sum)$/, '')

describe('docs/alerts.yml and docs/grafana.json', () => {
  let gateway: Gateway
  /** The values of each label of each metric. */
  const exposed = new Map<string, Map<string, Set<string>>>()

  beforeAll(async () => {
    gateway = await openGateway({ env: { BAN_AFTER: '1' } })
    const { key } = await gateway.createKey()
    // Every metric has a series when there was a success, a refusal and a ban.
    while ((await gateway.get('/pets', { key })).body.code !== 'key_banned');
    const { text } = await gateway.get('/metrics')
    for (const [, metric = ''] of text.matchAll(/^# TYPE (\w+)/gm)) exposed.set(metric, new Map())
    for (const [, sample = '', labels = ''] of text.matchAll(/^(\w+)\{(.*)\} /gm))
      for (const [, label = '', value = ''] of labels.matchAll(SELECTOR)) {
        const values = exposed.get(exposed.has(sample) ? sample : baseOf(sample))
        values?.set(label, (values.get(label) ?? new Set()).add(value))
      }
  })
  afterAll(() => gateway.close())

  const labelsOf = (metric: string) => exposed.get(exposed.has(metric) ? metric : baseOf(metric))

  test('use only metrics that a gateway has', () => {
    for (const expression of expressions)
      for (const [, metric = ''] of expression.matchAll(METRIC))
        expect(metric === 'up' || labelsOf(metric), `${metric} in ${expression}`).toBeTruthy()
    const names = expressions.flatMap((expression) => expression.match(/\bpetstore:\w+:\w+/g) ?? [])
    expect(recorded).toEqual(expect.arrayContaining(names))
  })

  test('use only labels, and values of labels, that these metrics have', () => {
    const reasons = new Set(Object.keys(catalogue))
    for (const expression of expressions) {
      for (const [, metric = '', selectors = ''] of expression.matchAll(SELECTED))
        for (const [, label = '', pattern = ''] of selectors.matchAll(SELECTOR)) {
          if (ADDED.includes(label)) continue
          // Without Redis they have no series.
          if (!testRedisUrl && metric.startsWith('petstore_redis_')) continue
          const values = label === 'reason' ? reasons : labelsOf(metric)?.get(label)
          const meant = pattern.split('|')
          expect([...(values ?? [])], `${label} of ${metric} in ${expression}`).toEqual(expect.arrayContaining(meant))
        }
      const metrics = [...expression.matchAll(METRIC)].map(([, metric = '']) => metric)
      if (!testRedisUrl && metrics.some((metric) => metric.startsWith('petstore_redis_'))) continue
      for (const [, list = ''] of expression.matchAll(GROUPED))
        for (const label of list.split(/,\s*/).filter((label: string) => !ADDED.includes(label)))
          expect(metrics.some((metric) => labelsOf(metric)?.has(label)) || label, expression).toBe(true)
    }
  })

  test('leave out no metric of the gateway: all of them are on the dashboard', () => {
    const own = [...exposed.keys()].filter((name) => name.startsWith('petstore_'))
    const used = new Set(shown.flatMap((expression) => [...expression.matchAll(METRIC)].map(([name]) => baseOf(name))))
    expect(own.filter((name) => !used.has(name))).toEqual([])
  })
})

test('every alert has a summary, a description, an action, and a link to a section that exists', () => {
  const sections = anchors(pages.get('docs/operators.md') ?? '')
  for (const { alert, annotations } of alerts) {
    expect(Object.keys(annotations), alert).toEqual(['summary', 'description', 'action', 'runbook'])
    const [page, anchor] = annotations.runbook?.split('#') ?? []
    expect([page, sections.includes(anchor ?? '')], annotations.runbook).toEqual(['docs/operators.md', true])
  }
})

test('docs/operators.md has every alert', () => {
  const named = [...(pages.get('docs/operators.md') ?? '').matchAll(/`(Petstore\w+)`/g)].map(([, name]) => name)
  expect([...new Set(named)].sort()).toEqual(alerts.map(({ alert }) => alert).sort())
})

test('the panels of the dashboard have titles and places of their own', () => {
  expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length)
  for (const { type, title, targets } of panels) expect(title && (type === 'row' || targets?.length)).toBeTruthy()
})
