"""Two views, and where they are."""

from __future__ import annotations

import json

from django.db import transaction
from django.http import HttpRequest, JsonResponse
from django.urls import path
from django.views.decorators.csrf import csrf_exempt

from examples.frameworks.django_shop.models import Order
from examples.frameworks.orders import OrderConfirmation, PlaceOrder
from mainspring.errors import NoSuchInstanceError
from mainspring.frameworks.django import post, running


@csrf_exempt
@transaction.atomic
def place(request: HttpRequest) -> JsonResponse:
    order = json.loads(request.body)
    Order.objects.create(order_id=order["order_id"], product=order["product"])
    posted = post(PlaceOrder(order["order_id"], order["product"]))
    return JsonResponse({"instances": posted.instances}, status=202)


def look(_request: HttpRequest, order_id: str) -> JsonResponse:
    try:
        row = running().instance(OrderConfirmation, order_id).row()
    except NoSuchInstanceError:
        return JsonResponse({"order_id": order_id, "status": "not taken in yet"}, status=404)
    return JsonResponse({"order_id": order_id, "status": row.status})


urlpatterns = [path("orders", place), path("orders/<str:order_id>", look)]
