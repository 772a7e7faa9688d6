# syntax=docker/dockerfile:1

# The index of all architectures, so that a build is the same whenever it is made. `docker buildx imagetools inspect
# python:3.13-slim-trixie` prints the digest of a newer one.
ARG PYTHON_IMAGE=python:3.13.15-slim-trixie@sha256:7c61056e61ac89e852de05f3dc6fa51a6dd2181797bceed46aa725dd7cb2cd3b

FROM ${PYTHON_IMAGE} AS build
WORKDIR /src
COPY pyproject.toml README.md LICENSE requirements.lock requirements-build.lock ./
COPY webhook/ webhook/
COPY certs/ certs/
# Everything into one folder without pip; the second stage takes that folder and nothing else. What is installed is what
# the locks name by hash (`make lock`), the builder of the wheel included.
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
RUN python -m venv --without-pip /opt/placement-webhook \
    && python -m pip --python /opt/placement-webhook/bin/python install \
        --require-hashes --only-binary :all: --requirement requirements.lock \
    && python -m pip install --require-hashes --only-binary :all: --requirement requirements-build.lock \
    && python -m pip wheel --no-deps --no-build-isolation --wheel-dir /tmp/wheel . \
    && python -m pip --python /opt/placement-webhook/bin/python install --no-deps --no-index /tmp/wheel/*.whl

FROM ${PYTHON_IMAGE}
ARG VERSION=0.1.0
LABEL org.opencontainers.image.title="placement-webhook" \
      org.opencontainers.image.description="A Kubernetes mutating admission webhook that places GPU training and inference pods" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.licenses="Apache-2.0"
# Nothing is installed in here any more.
RUN python -m pip uninstall --yes --quiet --root-user-action=ignore pip
COPY --from=build /opt/placement-webhook /opt/placement-webhook
# The bytecode is there already. With nothing to write, the root file system can be read-only.
ENV PATH=/opt/placement-webhook/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
USER 65532:65532
EXPOSE 8443 8080
# Kubernetes has its own probes (deploy/base/deployment.yaml); this one is for other runtimes.
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s --retries=3 \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8080/healthz', timeout=2)"]
ENTRYPOINT ["placement-webhook"]
CMD ["--help"]
