# The service in a container: not root, nothing written but /data and /tmp. See docs/service.md.
#   docker build --tag dpveil .
#   docker run --read-only --tmpfs /tmp --cap-drop ALL --security-opt no-new-privileges --volume dpveil:/data \
#     --publish 127.0.0.1:8000:8000 dpveil serve --host 0.0.0.0 --hostname photos.example.org \
#     --keys /data/keys.json --ledger sqlite:////data/budget.db --results /data/results.db
FROM python:3.11-slim-bookworm@sha256:a36c24f9cbdf4fd0f52d67f0823eeac19c2028c637cecc392d97f980d4fec56b AS build
ENV PIP_CONSTRAINT=/source/constraints.txt PIP_BUILD_CONSTRAINT=/source/constraints.txt \
    PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
COPY pyproject.toml constraints.txt README.md LICENSE /source/
COPY src /source/src
RUN python -m venv /opt/dpveil \
 && /opt/dpveil/bin/pip install "/source[faces,formats,service]" \
 && /opt/dpveil/bin/dpveil install faces --yes

FROM python:3.11-slim-bookworm@sha256:a36c24f9cbdf4fd0f52d67f0823eeac19c2028c637cecc392d97f980d4fec56b
COPY --from=build /opt/dpveil /opt/dpveil
RUN useradd --system --uid 10001 --no-create-home --shell /usr/sbin/nologin dpveil \
 && mkdir --mode 700 /data && chown dpveil /data
ENV PATH=/opt/dpveil/bin:$PATH PYTHONDONTWRITEBYTECODE=1 NUMBA_CACHE_DIR=/tmp/numba HOME=/tmp
USER 10001
VOLUME /data
EXPOSE 8000
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s --retries=3 \
  CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8000/readyz', timeout=4)"]
ENTRYPOINT ["dpveil"]
# Without keys and a ledger it is reached from its own machine alone: docker run --network host
CMD ["serve", "--results", "/data/results.db"]
