"""The documented import path of ``IntegrityVerifier``, which is defined in ``locks/verify.py``."""

from rye.executor.locks.verify import IntegrityResult, IntegrityVerifier, Violation

__all__ = ["IntegrityResult", "IntegrityVerifier", "Violation"]
