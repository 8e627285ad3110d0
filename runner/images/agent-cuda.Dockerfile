# For machines with an NVIDIA GPU: an agent image on a CUDA build of PyTorch.
#
#   docker build -f runner/images/agent-cuda.Dockerfile -t automedbench/agent-cuda runner/images
#   AUTOMEDBENCH_AGENT_IMAGE=automedbench/agent-cuda python -m runner run ...
#
# Pin the base as well: --build-arg BASE=pytorch/pytorch:2.5.1-cuda12.4-cudnn9-runtime@sha256:...
# The host needs the NVIDIA driver and the NVIDIA container toolkit. Runs record the id of the image they used.
ARG BASE=pytorch/pytorch:2.5.1-cuda12.4-cudnn9-runtime
FROM ${BASE}
COPY agent.lock.txt agent-cuda.lock.txt /tmp/
RUN python3 -m pip install --no-cache-dir --no-deps --require-hashes -r /tmp/agent.lock.txt -r /tmp/agent-cuda.lock.txt
WORKDIR /workspace
USER 10001:10001
