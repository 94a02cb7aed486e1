# Builds ckplan from Debian's packages by the two commands of README.md, and runs it.
#
#   docker build -t ckplan .
#   docker run --rm -v "$PWD:/work" ckplan model.onnx -D N=64 --budget 60% -o plan.json
FROM debian:12 AS build
COPY . /ckplan
WORKDIR /ckplan
RUN scripts/setup && scripts/build
RUN DESTDIR=/installed cmake --install build/release

# The programs need no more than the shared libraries of {fmt} and protobuf; HiGHS is installed beside them.
FROM debian:12-slim
RUN apt-get update && apt-get install --yes --no-install-recommends libfmt9 libprotobuf32 && rm -rf /var/lib/apt/lists/*
COPY --from=build /installed /
WORKDIR /work
ENTRYPOINT ["ckplan"]
