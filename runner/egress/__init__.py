"""What an agent's sandbox reaches with ``--network allowlist``: listed hosts, through a proxy on the host.

The sandbox has no network. One unix socket per run is mounted into it; behind the socket the runner decides,
resolves, connects and writes every request down. See ``docs/network.md``.
"""

from __future__ import annotations

from runner.egress.gateway import Opening, egress, require_egress

__all__ = ["Opening", "egress", "require_egress"]
