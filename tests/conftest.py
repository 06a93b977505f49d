"""What must be said before any test module is imported."""

import pytest

# Its assertions explain themselves only if pytest rewrites them, which it can do only before the first import.
pytest.register_assert_rewrite("mainspring.testing.store_contract")
