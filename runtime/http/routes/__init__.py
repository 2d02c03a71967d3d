"""One module an endpoint. Each exposes `ROUTES`, a tuple of Starlette routes; `app.routes` finds them. Nothing else is registered anywhere."""
