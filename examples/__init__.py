"""Small, whole processes to learn from and to lift into a real system. `python -m examples` tells their stories."""
