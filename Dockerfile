# The program in a small image with Python: docker build -t cellwright .
FROM rust:1.95-bookworm AS build
WORKDIR /src
COPY . .
ARG COMMIT
RUN CELLWRIGHT_COMMIT="$COMMIT" cargo build --locked --release --package cellwright-cli

FROM python:3.13-slim-bookworm
COPY --from=build /src/target/release/cellwright /usr/local/bin/cellwright
COPY --from=build /src/LICENSE-MIT /src/LICENSE-APACHE /usr/share/doc/cellwright/
RUN useradd --create-home person
USER person
WORKDIR /work
ENTRYPOINT ["cellwright"]
CMD ["--help"]
