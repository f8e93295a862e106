import { html } from './html.js'

const icons = {
  menu: 'M2 4h12M2 8h12M2 12h12',
  search: 'M7 2a5 5 0 1 0 0 10A5 5 0 0 0 7 2m3.6 8.6L14 14',
  key: 'M9.5 2a4.5 4.5 0 0 0-4.2 6.1L2 11.4V14h2.6v-1.8h1.8v-1.8l1-1A4.5 4.5 0 1 0 9.5 2m1.5 2.8v.4',
  theme: 'M8 2a6 6 0 1 0 0 12A6 6 0 0 0 8 2v12M8 5l3.5 1M8 8h5M8 11l3.5-1',
}

export const icon = (name: keyof typeof icons) =>
  html`<svg viewBox="0 0 16 16" aria-hidden="true"><path d="${icons[name]}"/></svg>`
