import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { settings } from '../src/settings.js'

// docs/kubernetes/petstore.yaml, compared with itself, the settings and the image: there is no cluster here.

// biome-ignore lint/suspicious/noExplicitAny: a test says what it expects
type Any = any

const documents = parseAllDocuments(readFileSync('docs/kubernetes/petstore.yaml', 'utf8'))
const objects: Any[] = documents.map((document) => document.toJS())
const [deployment, service, autoscaler, budget] = objects
const { spec: pod, metadata } = deployment.spec.template
const [container] = pod.containers

test('the objects are whole, and name each other', () => {
  for (const document of documents) expect(document.errors).toEqual([])
  expect(objects.map(({ apiVersion, kind, metadata: { name } }) => [apiVersion, kind, name])).toEqual([
    ['apps/v1', 'Deployment', 'petstore'],
    ['v1', 'Service', 'petstore'],
    ['autoscaling/v2', 'HorizontalPodAutoscaler', 'petstore'],
    ['policy/v1', 'PodDisruptionBudget', 'petstore'],
  ])
  for (const selector of [
    deployment.spec.selector.matchLabels,
    service.spec.selector,
    budget.spec.selector.matchLabels,
  ])
    expect(metadata.labels).toEqual(selector)
  expect(autoscaler.spec.scaleTargetRef).toEqual({ apiVersion: 'apps/v1', kind: 'Deployment', name: 'petstore' })
  expect(autoscaler.spec.minReplicas).toBe(deployment.spec.replicas)
  const volumes = pod.volumes.map(({ name }: Any) => name)
  expect(container.volumeMounts.map(({ name }: Any) => name)).toEqual(volumes)
})

test('the settings exist and fit together', () => {
  const env = Object.fromEntries(container.env.map(({ name, value }: Any) => [name, value]))
  expect(Object.keys(settings.shape)).toEqual(
    expect.arrayContaining(Object.keys(env).map((name) => name.replace(/_FILE$/, ''))),
  )
  expect(pod.terminationGracePeriodSeconds).toBe(Number(env.DRAIN_SECONDS) + 12)
  const ports = Object.fromEntries(container.ports.map(({ name, containerPort }: Any) => [name, containerPort]))
  expect(ports).toEqual({ http: settings.parse({}).PORT, admin: Number(env.ADMIN_PORT) })
  expect(service.spec.ports[0].targetPort).toBe('http')
  for (const probe of ['startupProbe', 'livenessProbe', 'readinessProbe'])
    expect(container[probe].httpGet).toEqual({ path: expect.stringMatching(/^\/(healthz|readyz)$/), port: 'admin' })
  const [mount] = container.volumeMounts
  for (const name of ['DATABASE_URL_FILE', 'REDIS_URL_FILE']) expect(env[name]).toContain(`${mount.mountPath}/`)
})

test('the image has a user that runAsNonRoot accepts', () => {
  expect(pod.securityContext.runAsNonRoot).toBe(true)
  const [, user] = /^USER (\S+)$/m.exec(readFileSync('Dockerfile', 'utf8')) ?? []
  expect([user, pod.securityContext.fsGroup]).toEqual(['1000', 1000])
})
