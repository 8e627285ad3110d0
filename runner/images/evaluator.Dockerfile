# What a submission is scored in: the packages `tasks` and `evaluator`, and what they import.
ARG BASE=automedbench/evaluator-packages
FROM ${BASE}
COPY source /opt/automedbench
RUN python3 -m compileall -q /opt/automedbench
ENV PYTHONPATH=/opt/automedbench:/opt/site
USER 10001:10001
