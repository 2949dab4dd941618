# The builder's Debian is the one of the last image: 12, glibc 2.36. Its gcc is all that the C parts need.
FROM rust:1.95.0-slim-bookworm AS build
WORKDIR /build

# The dependencies first, with empty sources: this layer lasts until Cargo.toml or Cargo.lock changes.
# Cargo wants a file for every target that Cargo.toml names.
COPY Cargo.toml Cargo.lock ./
RUN mkdir -p src benches examples/demo tests/it \
    && touch src/lib.rs benches/attempts.rs benches/core.rs benches/policy.rs benches/soak.rs benches/wire.rs \
    examples/demo/main.rs tests/it/main.rs \
    && echo 'fn main() {}' > src/main.rs \
    && cargo build --release --locked --bin tollgate

# Cargo goes by the times of files, and those of the sources may be older than the empty ones.
COPY src src
RUN touch src/lib.rs src/main.rs \
    && cargo build --release --locked --bin tollgate \
    && mkdir /keys

# glibc and libgcc, no shell. Its tags move, so the digest counts (an index: amd64 and arm64).
FROM gcr.io/distroless/cc-debian12:nonroot@sha256:9dac0a79194e45a7da0158a9c6da57b217585af0786db3845d1f0ec1a0dd182f
COPY --from=build /build/target/release/tollgate /usr/local/bin/tollgate
# A volume that is mounted here is the user's, so `tollgate token` can write to it.
COPY --from=build --chown=65532:65532 /keys /keys
USER 65532:65532
# Mount the configuration here; `serve` and `health` both read it.
ENV TOLLGATE_CONFIG=/etc/tollgate/tollgate.yaml
EXPOSE 10003
HEALTHCHECK --interval=5s --timeout=3s CMD ["/usr/local/bin/tollgate", "health"]
ENTRYPOINT ["/usr/local/bin/tollgate"]
CMD ["serve"]
