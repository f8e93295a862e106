# python3 tour.py FOLDER ADDRESS KEY LIMITED_KEY: uses the client that openapi-generator has written into FOLDER. Fails if the
# service, or a key for one request, does not do what it should.

import json
import sys
from urllib.parse import parse_qs, urlsplit

folder, address, key, limited_key = sys.argv[1:]
sys.path.insert(0, folder)

from openapi_client import ApiClient, ApiException, Configuration, PetsApi, StoreApi
from openapi_client.models import InventoryUpdate, NewCategory, NewOrder, NewPet


def client_of(key, retries=None):
    configuration = Configuration(host=address)
    configuration.access_token = key
    # By default, a GET that returns 429 is repeated after Retry-After.
    configuration.retries = retries
    return ApiClient(configuration)


pets, store = PetsApi(client_of(key)), StoreApi(client_of(key))


def pages_of(**question):
    place = {}
    while place is not None:
        page, _, headers = pets.list_pets_with_http_info(limit=50, count=True, **question, **place)
        assert headers["X-Total-Count"] == "120"
        yield [pet.id for pet in page]
        query = parse_qs(urlsplit(headers.get("Link", "").partition(">")[0]).query)
        if "cursor" in query:
            place = {"cursor": query["cursor"][0]}
        else:
            place = {"after": int(query["after"][0])} if query else None


def refusal(call):
    try:
        call()
    except ApiException as error:
        return error.status, json.loads(error.body)["code"]


category = pets.create_category(NewCategory(name="Geckos"))
names = ["Rex", "Bella", "rex"] * 40
batches = [pets.create_pets([NewPet(name=name, category_id=category.id) for name in names[i : i + 60]]) for i in (0, 60)]
created = [pet for batch in batches for pet in batch]
assert [pet.name for pet in created] == names and {pet.status for pet in created} == {"available"}

ids = [pet.id for pet in created]
by_name = [id for _, _, id in sorted((name.lower(), name, id) for name, id in zip(names, ids))]
for sort, expected in [("id", ids), ("name", by_name)]:
    for direction in ["asc", "desc"]:
        pages = list(pages_of(category_id=category.id, sort=sort, direction=direction))
        assert [len(page) for page in pages] == [50, 50, 20]
        assert sum(pages, []) == expected[:: 1 if direction == "asc" else -1]
assert [pet.id for pet in pets.list_pets(id=ids[-2:])] == ids[-2:]

related = pets.list_pets(id=ids[-2:], expand=["category", "inventory"])
assert [(pet.category.name, pet.inventory.quantity) for pet in related] == [("Geckos", 0)] * 2
assert pets.list_pets(id=ids[-1:])[0].category is None

new_order = NewOrder(pet_id=ids[0], quantity=2)
order = store.create_order(new_order, idempotency_key="the same")
assert (order.pet_id, order.quantity, order.complete, order.ship_date) == (ids[0], 2, False, None)
assert store.create_order(new_order, idempotency_key="the same") == order
assert store.update_inventory(ids[0], InventoryUpdate(quantity=7)).quantity == 7

unused = 2**53 - 1
assert refusal(lambda: store.get_order(unused)) == (404, "not_found")
assert refusal(lambda: pets.create_pet(NewPet(name="Rex", category_id=unused))) == (422, "unknown_reference")
limited = PetsApi(client_of(limited_key, retries=0))
limited.list_categories()
assert refusal(limited.list_categories) == (429, "rate_limited")
