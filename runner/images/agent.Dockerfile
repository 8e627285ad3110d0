# What an agent works in: Python and packages, no file of this project.
ARG BASE=automedbench/agent-packages
FROM ${BASE}
WORKDIR /workspace
USER 10001:10001
