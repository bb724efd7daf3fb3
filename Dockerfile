# The gateway as a container: one process, not root, everything that lasts in the volume /data.

FROM python:3.13-slim AS build
WORKDIR /source
COPY pyproject.toml README.md LICENSE ./
COPY config ./config
COPY session_store ./session_store
COPY adapters ./adapters
COPY gateway ./gateway
RUN python -m venv /opt/threadline \
    && /opt/threadline/bin/pip install --no-cache-dir .

FROM python:3.13-slim
RUN groupadd --gid 1000 threadline \
    && useradd --uid 1000 --gid threadline --create-home threadline \
    && install --directory --owner=threadline --group=threadline --mode=0700 /data
COPY --from=build /opt/threadline /opt/threadline

# Inside, the gateway listens on all addresses, since what is published arrives from outside the container; who may
# reach it is decided by where the port is published. Its token and its Host check hold all the same.
ENV PATH=/opt/threadline/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    THREADLINE_HOME=/data \
    THREADLINE_WEB__HOST=0.0.0.0 \
    THREADLINE_WEB__PORT=8737

USER threadline
VOLUME /data
EXPOSE 8737
# The gateway drains within 10 seconds of it.
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s --retries=3 \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8737/health', timeout=4)"]
ENTRYPOINT ["threadline"]
CMD ["gateway", "run"]
