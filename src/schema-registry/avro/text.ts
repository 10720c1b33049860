// Schema → text. The canonical form is the order and spelling of Apache Avro's Java library (Schema.toString):
// two texts that differ only in white space, key order or spelled-out defaults have one canonical form, so one id.
// Unlike Avro's "parsing canonical form" it keeps docs, defaults, aliases and foreign properties.
import { formatJson, type Json, type JsonObject } from '../json.ts';
import { type AnyNamedSchema, type AvroSchema, type Field, isNamed, type Names } from './schema.ts';

export interface TextOptions {
  /** Schemas written as bare names even at their first occurrence: the referenced ones. */
  readonly known?: Names;
  /** Sorts foreign properties by name, so that their order makes no difference. */
  readonly normalize?: boolean;
}

/** The canonical text; without `known`, one that stands alone. */
export function avroText(schema: AvroSchema, options: TextOptions = {}): string {
  const written = new Set(options.known?.keys());
  return formatJson(new Writer(written, options.normalize ?? false).write(schema, ''));
}

class Writer {
  readonly #written: Set<string>;
  readonly #normalize: boolean;

  constructor(written: Set<string>, normalize: boolean) {
    this.#written = written;
    this.#normalize = normalize;
  }

  write(schema: AvroSchema, namespace: string): Json {
    if (isNamed(schema)) return this.#named(schema, namespace);
    if (schema.type === 'union')
      return schema.branches.map((branch) => this.write(branch, namespace));
    const properties = this.#properties(schema.properties);
    switch (schema.type) {
      case 'array':
        return { type: 'array', items: this.write(schema.items, namespace), ...properties };
      case 'map':
        return { type: 'map', values: this.write(schema.values, namespace), ...properties };
      default:
        return Object.keys(properties).length === 0
          ? schema.type
          : { type: schema.type, ...properties };
    }
  }

  #named(schema: AnyNamedSchema, namespace: string): Json {
    if (this.#written.has(schema.fullName)) return relativeName(schema.fullName, namespace);
    this.#written.add(schema.fullName);
    return {
      type: schema.type,
      name: schema.name,
      ...(schema.namespace === namespace ? {} : { namespace: schema.namespace }),
      ...(schema.doc === undefined ? {} : { doc: schema.doc }),
      ...this.#body(schema),
      ...this.#properties(schema.properties),
      ...(schema.aliases.length === 0
        ? {}
        : { aliases: schema.aliases.map((alias) => relativeName(alias, schema.namespace)) }),
    };
  }

  #body(schema: AnyNamedSchema): JsonObject {
    switch (schema.type) {
      case 'enum':
        return {
          symbols: schema.symbols,
          ...(schema.default === undefined ? {} : { default: schema.default }),
        };
      case 'fixed':
        return { size: schema.size };
      default:
        return { fields: schema.fields.map((field) => this.#field(field, schema.namespace)) };
    }
  }

  #field(field: Field, namespace: string): JsonObject {
    return {
      name: field.name,
      type: this.write(field.schema, namespace),
      ...(field.doc === undefined ? {} : { doc: field.doc }),
      ...(field.default === undefined ? {} : { default: field.default }),
      ...(field.order === 'ascending' ? {} : { order: field.order }),
      ...(field.aliases.length === 0 ? {} : { aliases: field.aliases }),
      ...this.#properties(field.properties),
    };
  }

  #properties(properties: JsonObject): JsonObject {
    if (!this.#normalize) return properties;
    return Object.fromEntries(Object.entries(properties).sort(([a], [b]) => (a < b ? -1 : 1)));
  }
}

function relativeName(fullName: string, namespace: string): string {
  const dot = fullName.lastIndexOf('.');
  return dot >= 0 && fullName.slice(0, dot) === namespace ? fullName.slice(dot + 1) : fullName;
}
