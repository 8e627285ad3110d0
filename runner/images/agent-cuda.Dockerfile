# For machines with an NVIDIA GPU: an agent image on a CUDA build of PyTorch.
#
#   docker build -f runner/images/agent-cuda.Dockerfile -t automedbench/agent-cuda runner/images
#   AUTOMEDBENCH_AGENT_IMAGE=automedbench/agent-cuda python -m runner run ...
#
# The host needs the NVIDIA driver and the NVIDIA container toolkit. Runs record the id of the image they used.
ARG BASE=pytorch/pytorch:2.5.1-cuda12.4-cudnn9-runtime
FROM ${BASE}
COPY agent.in /tmp/agent.in
RUN python3 -m pip install --no-cache-dir -r /tmp/agent.in monai
WORKDIR /workspace
USER 10001:10001
