import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { expect, test } from 'vitest'
import { parseAllDocuments } from 'yaml'

// docs/kubernetes/petstore.yaml by the schemas that Kubernetes publishes.

const require = createRequire(import.meta.url)
const objects = parseAllDocuments(readFileSync('docs/kubernetes/petstore.yaml', 'utf8')).map((each) => each.toJS())

/** Adds to `unknown` the path of each field, until it is read: schemas read the fields that they know, and no others. */
function watched<T extends object>(object: T, unknown: Set<string>, path = ''): T {
  for (const name of Object.keys(object)) unknown.add(`${path}/${name}`)
  const seen = new Map<string | symbol, unknown>()
  return new Proxy(object, {
    get(target, name, receiver) {
      const value = Reflect.get(target, name, receiver)
      if (!Object.hasOwn(target, name) || seen.has(name)) return seen.get(name) ?? value
      unknown.delete(`${path}/${String(name)}`)
      const isObject = typeof value === 'object' && value !== null
      seen.set(name, isObject ? watched(value, unknown, `${path}/${String(name)}`) : value)
      return seen.get(name)
    },
  })
}

/** Fields that do not exist. Throws for a value of a wrong type, and for a field that is missing. */
function unknownFields(object: { apiVersion: string; kind: string }): string[] {
  const { apiVersion, kind } = object
  const Model = require(`kubernetes-models/${apiVersion}/${kind}`)[kind]
  const unknown = new Set<string>()
  // Its constructor would copy the object, and so read all of it.
  Model.prototype.validate.call(watched(object, unknown))
  return [...unknown]
}

test.each(objects.map((object) => [object.kind, object]))(
  'the %s has no fields that do not exist, and no wrong values',
  (_, object) => {
    expect(unknownFields(object)).toEqual([])
    const misspelt = structuredClone(object)
    misspelt.spec.replica = 2
    expect(unknownFields(misspelt)).toEqual(['/spec/replica'])
    expect(() => unknownFields({ ...object, spec: 'none' })).toThrow(/spec/)
  },
)

test('a field that does not exist in the container is found', () => {
  const [deployment] = structuredClone(objects)
  deployment.spec.template.spec.containers[0].readinessProb = {}
  expect(unknownFields(deployment)).toEqual(['/spec/template/spec/containers/0/readinessProb'])
})
