"""Django on PostgreSQL: a model's row and a message in `transaction.atomic()`; workers run apart.

export DJANGO_SETTINGS_MODULE=examples.frameworks.django_shop.settings
python -m django mainspring worker
python -m django migrate --run-syncdb
python -m django runserver
"""
