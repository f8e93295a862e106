import { createHash } from 'node:crypto'
import { renderGraphiQL } from '@graphql-yoga/render-graphiql'

/** What the page opens with: each operation runs as it is on the sample data. One tab, so that there is one place for the key. */
const examples = `# 1. Put your API key into Headers, below.
# 2. Load the schema again (the arrows at the left),
#    for its documentation and for completion.
# 3. Run the operation at the cursor: Ctrl-Enter.

# Pets, and what belongs to each, in one request.
query Pets {
  pets(limit: 3) {
    id
    name
    category {
      name
    }
    inventory {
      quantity
    }
    orders(limit: 2) {
      id
      quantity
      complete
    }
  }
}

# The page after the last id seen.
# Its arguments are in Variables, below.
query NextPage($after: Int64, $limit: Int) {
  pets(after: $after, limit: $limit) {
    id
    name
    status
  }
}

# A root field costs a request of the quota:
# this operation costs two.
query Overview {
  categories {
    id
    name
    pets(limit: 5) {
      name
    }
  }
  inventory(limit: 5, status: available) {
    quantity
    pet {
      name
    }
  }
}

mutation CreatePet {
  createPet(input: { name: "Luna", categoryId: 1 }) {
    id
    status
  }
}

mutation OrderAndStock {
  createOrder(input: { petId: 1, quantity: 2, shipDate: "2027-01-15T09:00:00Z" }) {
    id
    complete
  }
  updateInventory(petId: 1, input: { quantity: 8 }) {
    quantity
  }
}

# What is left. It costs nothing.
query Quota {
  quota {
    plan
    minute {
      limit
      remaining
      reset
    }
    day {
      limit
      remaining
      reset
    }
  }
}
`

/**
 * GraphiQL with nothing from a CDN, and the Content-Security-Policy under which it works: its one script, known by its
 * hash, workers made by that script, and the styles that its editor writes as it goes.
 *
 * @param base the path of the base URL
 */
export function graphiql(base: string) {
  const html = renderGraphiQL({
    title: 'Pet Store GraphiQL',
    favicon: 'data:,',
    endpoint: `${base}/graphql`,
    headers: JSON.stringify({ Authorization: 'Bearer YOUR_KEY' }, null, 2),
    defaultEditorToolsVisibility: 'headers',
    shouldPersistHeaders: true,
    defaultQuery: examples,
    variables: JSON.stringify({ after: 3, limit: 3 }, null, 2),
  } as Parameters<typeof renderGraphiQL>[0])
  const script = html.slice(html.indexOf('<script>') + '<script>'.length, html.lastIndexOf('</script>'))
  const csp = [
    "default-src 'none'",
    `script-src 'sha256-${createHash('sha256').update(script).digest('base64')}'`,
    'worker-src blob:',
    "style-src 'unsafe-inline'",
    'img-src data:',
    'font-src data:',
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ')
  return { html, csp }
}
