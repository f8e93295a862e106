import { act, create } from 'react-test-renderer'

// What the components of the guides show, without a browser.

globalThis.IS_REACT_ACT_ENVIRONMENT = true
let mounted
const all = (type) => mounted?.root.findAllByType(type) ?? []
export const rows = () => all('p').map(({ children: [text] }) => text)
export const buttons = (label) => all('button').filter(({ children: [text] }) => text.startsWith(label))

/** Until there are rows, and other ones. */
async function changed(action) {
  const before = String(rows())
  await act(action)
  while (rows().length === 0 || String(rows()) === before) await act(() => new Promise((done) => setTimeout(done, 20)))
}
export const mount = (app) =>
  changed(() => {
    mounted = create(app)
  })
export const press = (button) => changed(() => button.props.onClick())
