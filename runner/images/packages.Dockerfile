# A plain Python with one folder of locked packages, the layer under both images.
# `make images` prepares site/ and builds this; the base needs Python 3.11 or newer, coreutils and sh.
ARG BASE=python:3.12-slim
FROM ${BASE}
COPY site /opt/site
# A read-only container can never write byte code: without this layer every import would compile anew.
RUN python3 -m compileall -q -j 0 /opt/site
ENV PYTHONPATH=/opt/site
