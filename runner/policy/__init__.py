"""Training during a run is forbidden, and what counts is what was done, never what was written.

Only gradient steps that changed parameters are a breach: first a warning, then the end. How long a GPU was busy and
what executed code looks like are noted and decide nothing. See ``docs/policy.md``.
"""

from __future__ import annotations

from runner.policy.watch import WARNING, PolicyWatch, Sign, policy_watch

__all__ = ["WARNING", "PolicyWatch", "Sign", "policy_watch"]
