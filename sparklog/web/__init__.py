"""The page: a person opens it, and knows in ten seconds whether the cluster is well.

A process of its own, which speaks Kafka's protocol and sparklog's reports only, as any client. It reads and
changes nothing: each view names the command that would. ``/api/…`` gives what a view shows as JSON; the views
are plain modules of a browser (``static``), with no build step, no foreign address and relative URLs only.
"""
