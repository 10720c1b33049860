"""Confluent's Python client against our registry, where it does more than the scenarios ask: Protobuf with references,
maps and nested messages through registration, the newest version and the descriptor form; JSON Schema with the GUID in
a record's header; config, contexts, metadata.

    env.sh python registry_client.py URL        the last line is `N passed, N failed`
"""

import base64
import sys
import uuid

from confluent_kafka.schema_registry import (
    ConfigCompatibilityLevel,
    Metadata,
    MetadataProperties,
    Schema,
    SchemaRegistryClient,
    ServerConfig,
    header_schema_id_serializer,
)
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf import timestamp_pb2  # noqa: F401  (imported by the schema)

URL = sys.argv[1]
RUN = uuid.uuid4().hex[:6]
NEW_FORMAT = {"use.deprecated.format": False}


def client():
    """A fresh one each time: clients keep a schema's text whatever form they asked for."""
    return SchemaRegistryClient({"url": URL})


def context(topic, headers=None):
    return SerializationContext(f"{topic}-{RUN}", MessageField.VALUE, headers)


def messages():
    """Order and Order.Inner, in a file that imports another."""
    string, int32, int64, message = 9, 5, 3, 11
    pool = descriptor_pool.Default()
    money = descriptor_pb2.FileDescriptorProto(name=f"money_{RUN}.proto", package=f"m{RUN}", syntax="proto3")
    money.message_type.add(name="Money").field.add(name="units", number=1, type=int64, label=1)
    pool.Add(money)
    file = descriptor_pb2.FileDescriptorProto(name=f"order_{RUN}.proto", package=f"o{RUN}", syntax="proto3")
    file.dependency.extend([money.name, "google/protobuf/timestamp.proto"])
    order = file.message_type.add(name="Order")
    entry = order.nested_type.add(name="TagsEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, type=string, label=1)
    entry.field.add(name="value", number=2, type=int32, label=1)
    order.nested_type.add(name="Inner").field.add(name="x", number=1, type=int32, label=1)
    order.oneof_decl.add(name="_note")
    for name, number, kind, label, type_name in [
        ("price", 1, message, 1, f".m{RUN}.Money"),
        ("at", 2, message, 1, ".google.protobuf.Timestamp"),
        ("tags", 3, message, 3, f".o{RUN}.Order.TagsEntry"),
        ("inner", 4, message, 1, f".o{RUN}.Order.Inner"),
    ]:
        order.field.add(name=name, number=number, type=kind, label=label, type_name=type_name)
    order.field.add(name="note", number=5, type=string, label=1, proto3_optional=True, oneof_index=0)
    pool.Add(file)
    find = lambda name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"o{RUN}.{name}"))
    return find("Order"), find("Order.Inner")


def protobuf():
    Order, Inner = messages()
    order = Order(note="n", tags={"a": 1}, inner=Inner(x=4))
    order.price.units = 7
    order.at.seconds = 3
    one = client()
    data = ProtobufSerializer(Order, one, NEW_FORMAT)(order, context("order"))
    for reader in (one, client()):
        assert ProtobufDeserializer(Order, NEW_FORMAT, reader)(data, context("order")) == order
    latest = {**NEW_FORMAT, "auto.register.schemas": False, "use.latest.version": True}
    again = ProtobufSerializer(Order, client(), latest)(order, context("order"))
    assert again == data
    inner = ProtobufSerializer(Inner, client(), NEW_FORMAT)(Inner(x=1), context("inner"))
    assert inner[5:8].hex() == "040002", "index of the nested message counts the map's entries"
    registered = client().get_latest_version(f"order-{RUN}-value").schema
    assert "message Order" in registered.schema_str and len(registered.references) == 1
    serialized = client().get_schema(int.from_bytes(data[1:5], "big"), fmt="serialized").schema_str
    file = descriptor_pb2.FileDescriptorProto.FromString(base64.b64decode(serialized))
    assert [nested.name for nested in file.message_type[0].nested_type] == ["TagsEntry", "Inner"]


def json_with_guid():
    text = '{"$schema":"https://json-schema.org/draft/2020-12/schema","title":"T","type":"object"}'
    headers = context("json", [])
    conf = {"schema.id.serializer": header_schema_id_serializer}
    data = JSONSerializer(text, client(), conf=conf)({"id": 1}, headers)
    assert headers.headers[0][0] == "__value_schema_id" and data.startswith(b"{")
    assert JSONDeserializer(None, schema_registry_client=client())(data, headers) == {"id": 1}


def config_contexts_metadata():
    subject = f"meta-{RUN}"
    level = ServerConfig(compatibility=ConfigCompatibilityLevel.FULL, compatibility_group="major")
    client().set_config(subject, level)
    assert client().get_config(subject).compatibility_group == "major"
    there = f":.c{RUN}:a"
    added = client().register_schema_full_response(there, Schema('"int"', "AVRO"))
    assert client().get_schema(added.schema_id, subject_name=there).schema_str == '"int"'
    assert client().get_schema_by_guid(added.guid).schema_str == '"int"'
    assert f".c{RUN}" in client().get_contexts()
    metadata = Metadata(None, MetadataProperties({"k": "v"}), None)
    client().register_schema(subject, Schema('"int"', "AVRO", metadata=metadata))
    assert client().get_latest_with_metadata(subject, {"k": "v"}).version == 1


failed = 0
SCENARIOS = [protobuf, json_with_guid, config_contexts_metadata]
for scenario in SCENARIOS:
    try:
        scenario()
        print(f"ok    {scenario.__name__}")
    except Exception as error:  # noqa: BLE001
        failed += 1
        print(f"FAIL  {scenario.__name__}: {type(error).__name__}: {error}")
print(f"{len(SCENARIOS) - failed} passed, {failed} failed")
sys.exit(1 if failed else 0)
