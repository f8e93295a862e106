# CI performs these steps without an engine (.ci/image.mjs), and runs the tests on this Node too. Its major is pinned here
# alone: the newest that calls itself LTS (process.release.lts).
FROM node:24-slim AS node

# Everything that builds; Prisma Studio runs here too.
FROM node AS build
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --ignore-scripts
COPY tsconfig.json prisma.config.ts ./
COPY prisma prisma
COPY docs/guides docs/guides
COPY schema schema
COPY src src
RUN npm run build

FROM build AS production
RUN npm prune --omit=dev

# Neither compiler nor tests.
FROM node
ENV NODE_ENV=production DATA_DIR=/data
WORKDIR /app
COPY --from=production /app ./
RUN mkdir /data && chown node /data
USER node
VOLUME /data
EXPOSE 3000
HEALTHCHECK --interval=10s --timeout=3s CMD ["node", "--eval", "fetch('http://127.0.0.1:' + (process.env.PORT ?? 3000) + '/healthz').then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
# Node itself, not npm, so that the signal to stop reaches it.
CMD ["node", "dist/src/main.js"]
