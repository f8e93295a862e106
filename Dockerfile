# The build and its tools stay in the first stages; the image has neither compiler nor test.
FROM node:22-slim AS build
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci
COPY tsconfig.json prisma.config.ts ./
COPY prisma prisma
COPY docs/guides docs/guides
COPY schema schema
COPY src src
RUN node src/run.mjs admin/keys --help > /dev/null

FROM build AS production
RUN npm prune --omit=dev

FROM node:22-slim
ENV NODE_ENV=production DATA_DIR=/data
WORKDIR /app
COPY --from=production /app ./
RUN mkdir /data && chown node /data
USER node
VOLUME /data
EXPOSE 3000
HEALTHCHECK --interval=10s --timeout=3s CMD ["node", "-e", "fetch('http://127.0.0.1:' + (process.env.PORT ?? 3000) + '/healthz').then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
# Node itself, not npm, so that the signal to stop reaches it.
CMD ["node", "--max-semi-space-size=8", "--heap-growing-percent=20", "dist/src/main.js"]
