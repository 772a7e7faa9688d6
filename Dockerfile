# The index of all architectures, so that a build is the same whenever it is made. `docker buildx imagetools inspect
# python:3.13-slim-trixie` prints the digest of a newer one.
ARG PYTHON_IMAGE=python:3.13.15-slim-trixie@sha256:7c61056e61ac89e852de05f3dc6fa51a6dd2181797bceed46aa725dd7cb2cd3b
# The image of the build stage: the same Python. Set it where pip needs the CA or the pip.conf of your network.
ARG BUILD_IMAGE=${PYTHON_IMAGE}

FROM ${BUILD_IMAGE} AS build
WORKDIR /src
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore PYTHONDONTWRITEBYTECODE=1
# The dependencies in one folder without pip, before the code, so that changed code leaves their layer as it is. What is
# installed is what the locks name by hash (`make lock`), the builder of the wheel included.
COPY requirements.lock requirements-build.lock ./
RUN python -m venv --without-pip /opt/placement-webhook \
    && python -m pip --python /opt/placement-webhook/bin/python install --no-compile \
        --require-hashes --only-binary :all: --requirement requirements.lock \
    && python -m pip install --no-compile --require-hashes --only-binary :all: --requirement requirements-build.lock
# Nothing imports the generated API classes and models of the Kubernetes client, which loads them when they are used,
# nor the tests and C sources of packages. The bytecode of the rest (33 MB with that of the code) saves half of a start; it
# is not compared with the sources again.
RUN cd /opt/placement-webhook/lib/python3*/site-packages \
    && find kubernetes/client/api kubernetes/client/models kubernetes/aio/client/api kubernetes/aio/client/models \
        -type f ! -name __init__.py -delete \
    && find . -type d -name tests -prune -exec rm -r {} + \
    && find . -type f \( -name '*.c' -o -name '*.pyx' -o -name '*.pxd' -o -name '*.h' -o -name '*.a' \) -delete \
    && /opt/placement-webhook/bin/python -m compileall -q --invalidation-mode unchecked-hash .
COPY pyproject.toml README.md LICENSE ./
COPY webhook/ webhook/
COPY certs/ certs/
COPY packages/ packages/
# The demo proves that nothing is missing: it serves, reads a cluster, admits pods and places them.
RUN python -m pip wheel --no-deps --no-build-isolation --wheel-dir /tmp/wheel . \
    && python -m pip --python /opt/placement-webhook/bin/python install --no-compile --no-deps --no-index \
        --prefix /code /tmp/wheel/*.whl \
    && python -m compileall -q --invalidation-mode unchecked-hash /code \
    && cd /code/lib/python3*/site-packages \
    && PYTHONPATH=$PWD /opt/placement-webhook/bin/python -m webhook demo

FROM ${PYTHON_IMAGE}
ARG VERSION=0.1.0
LABEL org.opencontainers.image.title="placement-webhook" \
      org.opencontainers.image.description="A Kubernetes mutating admission webhook that places GPU training and inference pods" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.licenses="Apache-2.0"
# Nothing is installed in here any more.
RUN python -m pip uninstall --yes --quiet --root-user-action=ignore pip \
    && rm -rf /usr/local/lib/python3*/ensurepip
COPY --from=build /opt/placement-webhook /opt/placement-webhook
COPY --from=build /code /opt/placement-webhook
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
