// What a schema says about a type beyond how it is written: Avro's logical types, and those that Kafka Connect's names
// of types add.

/** Kinds are the specification’s names, or our own where only Connect has the type. */
export type AvroLogical =
  | { readonly kind: 'decimal'; readonly precision: number; readonly scale: number }
  | {
      readonly kind:
        | 'uuid'
        | 'date'
        | 'duration'
        | 'time-millis'
        | 'time-micros'
        | 'timestamp-millis'
        | 'timestamp-micros'
        | 'timestamp-nanos'
        | 'local-timestamp-millis'
        | 'local-timestamp-micros'
        | 'local-timestamp-nanos'
        /** Connect only: nanoseconds of the day, text with an offset, and times that may lie outside the day. */
        | 'time-nanos'
        | 'zoned-timestamp'
        | 'wide-time-millis'
        | 'wide-time-micros';
    };
