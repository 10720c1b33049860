"""Writes the same orders by the official serializers: Avro, Protobuf and JSON Schema, with the schema's id before the
value and with its GUID in a header. Arguments: bootstrap, registry address, folder for generated code."""
import sys

from confluent_kafka import Producer
from confluent_kafka.schema_registry import (
    SchemaRegistryClient,
    header_schema_id_serializer,
    prefix_schema_id_serializer,
)
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

bootstrap, registry, folder = sys.argv[1:4]
sys.path.insert(0, folder)
import order_pb2  # noqa: E402

COUNT = 500
AVRO = """{"type": "record", "name": "Order", "fields": [
  {"name": "id", "type": "long"}, {"name": "name", "type": "string"},
  {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}}]}"""
JSON = """{"title": "Order", "type": "object", "properties": {
  "id": {"type": "integer"}, "name": {"type": "string"}, "at": {"type": "string", "format": "date-time"}}}"""


def message(i):
    order = order_pb2.Order(id=i, prices=[i / 2, i], status=i % 2)
    order.customer.name = f"name {i}"
    order.customer.points["a"] = i
    order.at.seconds = 1_700_000_000 + i
    if i % 3 == 0:
        order.note.value = "noted"
    if i % 2 == 0:
        order.cash = 2**63 + i
    return order


client = SchemaRegistryClient({"url": registry})
producer = Producer({"bootstrap.servers": bootstrap})
for where, marker in (("prefix", prefix_schema_id_serializer), ("header", header_schema_id_serializer)):
    conf = {"schema.id.serializer": marker}
    cases = {
        "avro": (AvroSerializer(client, AVRO, conf=conf), lambda i: {"id": i, "name": f"name {i}", "at": 1_700_000_000_000 + i * 1000}),
        "protobuf": (ProtobufSerializer(order_pb2.Order, client, conf), message),
        "json": (JSONSerializer(JSON, client, conf=conf), lambda i: {"id": i, "name": f"name {i}", "at": f"2023-11-14T22:{i % 60:02d}:00Z"}),
    }
    for name, (serializer, value) in cases.items():
        topic = f"{name}_{where}"
        for i in range(COUNT):
            headers = []
            context = SerializationContext(topic, MessageField.VALUE, headers)
            payload = serializer(value(i), context)
            given = context.headers or headers
            pairs = list(given.items()) if isinstance(given, dict) else list(given)
            producer.produce(topic, payload, headers=pairs)
            producer.poll(0)
left = producer.flush(30)
print("left", left)
sys.exit(1 if left else 0)
