"""An app inside a web framework: started and stopped with it, and available where a request is answered.

asgi        a lifespan for FastAPI, Starlette and whatever else has one
fastapi     what an endpoint of FastAPI asks for: the app, or a transaction that also sends
process     an app that runs beside code without an event loop, once in each process
flask       an extension for Flask
django      an app for Django's INSTALLED_APPS, with a command for workers
own_file    keeps other libraries out of an app's SQLite file

None of them is needed to send in a transaction: `app.transaction()` and `app.post` are all there is to it.
"""
