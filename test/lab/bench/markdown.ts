/** A Markdown table; columns after the first `left` ones are aligned right. */
export function table(head: string[], rows: (string | number)[][], left = 1) {
  const line = (cells: (string | number)[]) => `| ${cells.join(' | ')} |`
  const rule = head.map((_, i) => (i < left ? '---' : '---:'))
  return [line(head), line(rule), ...rows.map(line)].join('\n')
}

export const whole = (value: number) => Math.round(value).toLocaleString('en-US')
