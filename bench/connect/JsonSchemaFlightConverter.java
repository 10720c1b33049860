package floe.bench;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectReader;
import com.fasterxml.jackson.databind.json.JsonMapper;
import java.io.IOException;
import java.util.Map;
import org.apache.kafka.connect.data.Field;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.data.SchemaAndValue;
import org.apache.kafka.connect.data.SchemaBuilder;
import org.apache.kafka.connect.data.Struct;
import org.apache.kafka.connect.errors.DataException;
import org.apache.kafka.connect.storage.Converter;

/**
 * Flights in JSON with a JSON Schema behind Confluent's header (0, schema id) to Connect structs.
 *
 * <p>A stand-in for a registry-backed converter, none of which is on Maven Central: it reads a tree and makes a struct
 * by one fixed schema (the one in flight-data.ts), without validating and without a look-up by id, which flatters the
 * sink a little. Dates stay texts, as JSON Schema has them; the sink parses them.
 */
public class JsonSchemaFlightConverter implements Converter {
  private static final int HEADER = 5;
  private static final Schema SCHEMA =
      SchemaBuilder.struct()
          .name("floe.bench.Flight")
          .field("date", Schema.OPTIONAL_STRING_SCHEMA)
          .field("delay", Schema.OPTIONAL_INT64_SCHEMA)
          .field("distance", Schema.OPTIONAL_INT64_SCHEMA)
          .field("origin", Schema.OPTIONAL_STRING_SCHEMA)
          .field("destination", Schema.OPTIONAL_STRING_SCHEMA)
          .build();

  private final ObjectReader reader = JsonMapper.builder().build().reader();

  @Override
  public void configure(Map<String, ?> configs, boolean isKey) {}

  @Override
  public byte[] fromConnectData(String topic, Schema schema, Object value) {
    throw new DataException("read only");
  }

  @Override
  public SchemaAndValue toConnectData(String topic, byte[] value) {
    if (value == null) {
      return SchemaAndValue.NULL;
    }
    JsonNode tree;
    try {
      tree = reader.readTree(value, HEADER, value.length - HEADER);
    } catch (IOException e) {
      throw new DataException(e);
    }
    Struct struct = new Struct(SCHEMA);
    for (Field field : SCHEMA.fields()) {
      JsonNode v = tree.get(field.name());
      if (v == null || v.isNull()) {
        continue;
      }
      struct.put(field, field.schema().type() == Schema.Type.INT64 ? v.longValue() : v.textValue());
    }
    return new SchemaAndValue(SCHEMA, struct);
  }
}
