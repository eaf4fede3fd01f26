# The controller alone: static, non-root, no shell and no git binary.
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN make build

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /src/bin/controller /controller
COPY --from=build /src/bin/pushback /usr/local/bin/pushback
USER 65532:65532
ENTRYPOINT ["/controller"]
