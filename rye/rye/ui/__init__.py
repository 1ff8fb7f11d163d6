"""The page ``rye ui``: what there is, what would run, what is running, what ran, who is trusted.

A page is a module of :mod:`rye.ui.pages` whose name is in ``rye.ui.app.MODULES``. It has a tuple
``ROUTES`` of :class:`rye.ui.page.Page` and :class:`rye.ui.page.Action`, and templates in
``templates/``::

    def overview(request: Request) -> Response:
        site = site_of(request)
        with site.history() as history:
            rows = list(runs(history.connection, Wanted(), limit=51))
        return render(request, "history.html", title="History", runs=rows)

    def replay(request: Request, form: Form) -> Response:
        ...
        return redirect(f"/runs/{new_id}")

    ROUTES = (
        Page("/history", overview, section="History"),
        Action("/runs/{run_id}/replay", replay),
    )

- A ``Page`` answers GET and changes nothing. Its function is called in a thread, or awaited if it
  is ``async``; only an ``async`` one may use the event loop. Pages that share a ``section`` share
  an entry of the navigation, which links to the first of them.
- An ``Action`` answers POST. Before its function is called, the guard has checked the host, the
  origin and the session; the action itself checks that the page was started with ``--run`` and that
  the form has the token of the session. Every form needs ``{{ csrf() }}``, and every button of an
  action should be shown only ``{% if may_run %}``.
- A ``RyeError`` that a function raises becomes an error page with its message.
- ``site_of(request)`` has the context, the catalogue and the history; ``parameters_of(request)``
  the query; ``render``, ``redirect`` and ``stream`` (server-sent events) make responses.
- Templates extend ``base.html``. Every expression is escaped for HTML, and its control characters
  and bidirectional overrides are shown as escapes: do not use ``|safe``. There are no inline
  scripts, styles or ``style`` attributes: the content security policy forbids them.
- Filters: ``moment`` (milliseconds or ISO text → local time), ``ago``, ``duration`` (ms), ``size``
  (bytes), ``short`` (a hash or id), ``outcome`` (a coloured word). Macros in ``parts.html``:
  ``pager``, ``badge``, ``facts``, ``empty``. ``Pager`` in :mod:`rye.ui.paging` cuts a list.
- ``static/rye.js`` connects every element with ``data-events="/address"`` to a stream. An event
  ``append`` or ``set`` has JSON ``{"id": ELEMENT, "text": TEXT}``; ``reload`` loads the page again.
"""
