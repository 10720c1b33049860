package floe.bench;

import com.google.protobuf.CodedInputStream;
import com.google.protobuf.DescriptorProtos.DescriptorProto;
import com.google.protobuf.DescriptorProtos.FieldDescriptorProto;
import com.google.protobuf.DescriptorProtos.FieldDescriptorProto.Type;
import com.google.protobuf.DescriptorProtos.FileDescriptorProto;
import com.google.protobuf.Descriptors.Descriptor;
import com.google.protobuf.Descriptors.DescriptorValidationException;
import com.google.protobuf.Descriptors.FieldDescriptor;
import com.google.protobuf.Descriptors.FileDescriptor;
import com.google.protobuf.DynamicMessage;
import com.google.protobuf.Message;
import com.google.protobuf.TimestampProto;
import java.io.IOException;
import java.util.Date;
import java.util.Map;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.data.SchemaAndValue;
import org.apache.kafka.connect.data.SchemaBuilder;
import org.apache.kafka.connect.data.Struct;
import org.apache.kafka.connect.data.Timestamp;
import org.apache.kafka.connect.errors.DataException;
import org.apache.kafka.connect.storage.Converter;

/**
 * Flights in Protobuf behind Confluent's header (0, schema id, message index 0) to Connect structs.
 *
 * <p>A stand-in for a registry-backed converter, none of which is on Maven Central: it reads a dynamic message by its
 * descriptor, as those do, with one fixed schema (the one in flight-data.ts) and no look-up by id, which flatters the
 * sink a little.
 */
public class ProtobufFlightConverter implements Converter {
  private static final int HEADER = 6;
  private static final Schema SCHEMA =
      SchemaBuilder.struct()
          .name("floe.bench.Flight")
          .field("date", Timestamp.builder().optional().build())
          .field("delay", Schema.OPTIONAL_INT64_SCHEMA)
          .field("distance", Schema.OPTIONAL_INT64_SCHEMA)
          .field("origin", Schema.OPTIONAL_STRING_SCHEMA)
          .field("destination", Schema.OPTIONAL_STRING_SCHEMA)
          .build();

  private Descriptor flight;
  private FieldDescriptor seconds;
  private FieldDescriptor nanos;

  @Override
  public void configure(Map<String, ?> configs, boolean isKey) {
    DescriptorProto.Builder message = DescriptorProto.newBuilder().setName("Flight");
    message.addField(field("date", 1, Type.TYPE_MESSAGE).setTypeName(".google.protobuf.Timestamp"));
    message.addField(field("delay", 2, Type.TYPE_SINT64));
    message.addField(field("distance", 3, Type.TYPE_INT64));
    message.addField(field("origin", 4, Type.TYPE_STRING));
    message.addField(field("destination", 5, Type.TYPE_STRING));
    FileDescriptorProto file =
        FileDescriptorProto.newBuilder()
            .setName("flight.proto")
            .setSyntax("proto3")
            .setPackage("floe.bench")
            .addDependency("google/protobuf/timestamp.proto")
            .addMessageType(message)
            .build();
    FileDescriptor[] imports = {TimestampProto.getDescriptor()};
    try {
      flight = FileDescriptor.buildFrom(file, imports).findMessageTypeByName("Flight");
    } catch (DescriptorValidationException e) {
      throw new DataException(e);
    }
    Descriptor timestamp = imports[0].findMessageTypeByName("Timestamp");
    seconds = timestamp.findFieldByName("seconds");
    nanos = timestamp.findFieldByName("nanos");
  }

  private static FieldDescriptorProto.Builder field(String name, int number, Type type) {
    return FieldDescriptorProto.newBuilder()
        .setName(name)
        .setNumber(number)
        .setType(type)
        .setLabel(FieldDescriptorProto.Label.LABEL_OPTIONAL);
  }

  @Override
  public byte[] fromConnectData(String topic, Schema schema, Object value) {
    throw new DataException("read only");
  }

  @Override
  public SchemaAndValue toConnectData(String topic, byte[] value) {
    if (value == null) {
      return SchemaAndValue.NULL;
    }
    DynamicMessage message;
    try {
      message =
          DynamicMessage.parseFrom(
              flight, CodedInputStream.newInstance(value, HEADER, value.length - HEADER));
    } catch (IOException e) {
      throw new DataException(e);
    }
    Struct struct = new Struct(SCHEMA);
    int i = 0;
    for (FieldDescriptor field : flight.getFields()) {
      Object v = message.getField(field);
      struct.put(SCHEMA.fields().get(i++), v instanceof Message m ? date(m) : v);
    }
    return new SchemaAndValue(SCHEMA, struct);
  }

  private Date date(Message timestamp) {
    return new Date(
        (Long) timestamp.getField(seconds) * 1_000 + (Integer) timestamp.getField(nanos) / 1_000_000);
  }
}
