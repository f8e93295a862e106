// The bundler turns these files into texts.
declare module '*.graphql' {
  const text: string
  export default text
}
