"""Registers a job type, enqueues one job, and waits for its end.

    BATON_URL=… BATON_KEY=… python3 enqueue.py ada@example.com

The key is an operator's."""

import sys

from baton import Client

client = Client()
client.put_job_type(
    "mail.send",
    {
        "summary": "Sends one mail",
        "lease": "30s",
        "maxAttempts": 3,
        "retry": {"base": "1s", "max": "60s", "jitter": True},
    },
)
job = client.enqueue("mail.send", {"to": sys.argv[1]}, project="demo", wait=60)
print(job.state, job.result or job.error)
