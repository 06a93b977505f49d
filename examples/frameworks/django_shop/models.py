"""The shop's own table."""

from __future__ import annotations

from django.db import models


class Order(models.Model):
    order_id = models.CharField(max_length=100, primary_key=True)
    product = models.CharField(max_length=100)

    def __str__(self) -> str:
        return f"{self.order_id}: {self.product}"
