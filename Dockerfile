# CI runs these steps without a container engine (.ci/image.mjs), and runs the tests with this Node version too. The major
# version is set only here: the newest LTS (process.release.lts).
FROM node:24-slim AS node

# The build stage, with development dependencies. Prisma Studio runs here too.
FROM node AS build
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --ignore-scripts
COPY tsconfig.json prisma.config.ts ./
COPY prisma prisma
COPY docs/introduction.md docs/
COPY docs/guides docs/guides
COPY docs/examples docs/examples
COPY schema schema
COPY src src
# Metrics name it: docker build --build-arg COMMIT=$(git rev-parse HEAD) .
ARG COMMIT
RUN npm run build

# Without Prisma's command line. The Prisma client names it as an optional peer, so that npm keeps it unless optional
# dependencies are omitted too; the gateway needs none of these.
FROM build AS production
RUN npm prune --omit=dev --omit=optional

# The image. .ci/image.mjs checks what is in it.
FROM node
ENV NODE_ENV=production DATA_DIR=/data
WORKDIR /app
COPY --from=production /app ./
RUN mkdir /data && chown 1000 /data
# By its number, which runAsNonRoot of Kubernetes asks for.
USER 1000
VOLUME /data
EXPOSE 3000
HEALTHCHECK --interval=10s --timeout=3s CMD ["node", "--eval", "fetch('http://127.0.0.1:' + (process.env.ADMIN_PORT || process.env.PORT || 3000) + '/healthz').then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
# Node instead of npm, so that it receives the stop signal; docs/operators.md says what the flags are for.
CMD ["node", "--max-semi-space-size=32", "dist/src/main.js"]
