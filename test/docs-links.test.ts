import { existsSync, statSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { describe, expect, test } from 'vitest'
import { anchors, pages, withoutCode } from './support/markdown.js'

describe('the pages of the repository', () => {
  test('link only to files and headings that exist', () => {
    for (const [page, text] of pages)
      for (const [, link = ''] of withoutCode(text).matchAll(/\]\(([^)\s]+)\)/g)) {
        if (/^\w+:/.test(link)) continue
        const [path = '', anchor] = link.split('#')
        const target = path === '' ? page : normalize(join(dirname(page), path))
        expect(existsSync(target), `${page}: ${link}`).toBe(true)
        if (anchor !== undefined) expect(anchors(pages.get(target) ?? ''), `${page}: ${link}`).toContain(anchor)
      }
  })

  test('name only files that exist', () => {
    for (const [page, text] of pages) {
      // Decision records and the changelog also name what is gone.
      if (/decisions\/\d|CHANGELOG/.test(page)) continue
      for (const [, path = ''] of text.matchAll(/`((?:src|schema|test|prisma|docs)\/[\w./-]+)`/g))
        expect(existsSync(path), `${page}: ${path}`).toBe(true)
    }
  })

  test('show only pictures that exist, say what they show, and have at most 150 KB', () => {
    for (const [page, text] of pages)
      for (const [, alternative, path = ''] of text.matchAll(/!\[([^\]]*)\]\(([^)]+)\)/g)) {
        expect(alternative, `${page}: ${path}`).not.toBe('')
        expect(statSync(join(dirname(page), path)).size, path).toBeLessThanOrEqual(150_000)
      }
  })

  test('that are long have a table of contents with every section', () => {
    const long = ['README', 'CONTRIBUTING', 'docs/architecture', 'docs/operators', 'docs/specification']
    for (const page of long.map((name) => `${name}.md`)) {
      const text = pages.get(page) ?? ''
      const sections = [...withoutCode(text).matchAll(/^## (.+)$/gm)].map(([, heading = '']) => heading)
      expect(sections.length).toBeGreaterThan(2)
      for (const heading of sections) expect(text, page).toContain(`[${heading}](#`)
    }
  })
})
