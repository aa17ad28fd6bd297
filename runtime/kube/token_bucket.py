"""How often requests may be sent: a token bucket, as client-go's. Pure.

Source: k8s.io/client-go/util/flowcontrol, golang.org/x/time/rate.
"""

from __future__ import annotations


class TokenBucket:
    """`qps` tokens a second come into a bucket that holds `burst`; a request takes one.

    The bucket is full at first. A `qps` of 0 limits nothing.
    """

    def __init__(self, qps: float = 0.0, burst: int = 1) -> None:
        self._qps = qps
        self._burst = burst
        self._tokens = float(burst)
        self._at_s = 0.0

    def take(self, now_s: float) -> float:
        """Take a token, and return in how many seconds it is there.

        Whoever comes later waits at least as long: tokens may be owed. `now_s` is of a
        clock that never goes back.
        """
        if not self._qps:
            return 0.0
        grown = self._tokens + (now_s - self._at_s) * self._qps
        self._tokens = min(self._burst, grown) - 1
        self._at_s = now_s
        return max(0.0, -self._tokens / self._qps)
