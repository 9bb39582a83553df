"""The service: plans and releases over HTTP, with a budget for each subject (`dpveil serve`).

Its road: `guard` and `app` (a request) → `uploads` (its form) → `jobs` (which pays by `budget`) → `workers`
(processes, each of which runs `worker`) → `store` (what was made) → `answers`.
"""
