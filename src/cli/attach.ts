// What to paste into other engines to read Floe's tables, by engine: for the catalog that the tables are in.

export interface AttachOptions {
  readonly type: 'embedded' | 'rest' | 'glue';
  /** Of a REST catalog, the embedded one included: `http://host:port`. */
  readonly uri: string;
  /** REST: the catalog's name for it; Glue: where tables lie. Empty: any. */
  readonly warehouse: string;
  /** Empty for a local warehouse or AWS itself. */
  readonly s3Endpoint: string;
}

/** Engine → text. Secrets are never among it. */
export function attachTexts(options: AttachOptions): Readonly<Record<string, string>> {
  return options.type === 'glue' ? glueTexts(options) : restTexts(options);
}

const SPARK = `spark-sql --packages org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:1.11.0`;
const CONF = '--conf spark.sql.catalog.floe';

function restTexts({ type, uri, warehouse, s3Endpoint }: AttachOptions) {
  const own = type === 'embedded';
  const name = own ? '' : `, warehouse="${warehouse}"`;
  const python = s3Endpoint === '' ? '' : `, **{"s3.endpoint": "${s3Endpoint}"}`;
  const spark = [
    ...(own ? [] : [`${CONF}.warehouse=${warehouse}`]),
    ...(s3Endpoint === '' ? [] : [`${CONF}.s3.endpoint=${s3Endpoint}`]),
  ];
  return {
    DuckDB: `INSTALL iceberg; LOAD iceberg;
ATTACH '${own ? 'warehouse' : warehouse}' AS floe (TYPE iceberg, ENDPOINT '${uri}'${own ? ", AUTHORIZATION_TYPE 'none'" : ''});
SHOW ALL TABLES;`,
    pyiceberg: `from pyiceberg.catalog import load_catalog
catalog = load_catalog("floe", uri="${uri}"${name}${python})
print(catalog.list_tables("kafka"))`,
    Spark: [
      SPARK,
      `${CONF}=org.apache.iceberg.spark.SparkCatalog`,
      `${CONF}.type=rest ${CONF}.uri=${uri}`,
      ...spark,
    ].join(' \\\n  '),
  };
}

function glueTexts({ warehouse }: AttachOptions) {
  return {
    Athena: `SELECT * FROM "AwsDataCatalog"."kafka"."TABLE" LIMIT 10;`,
    pyiceberg: `from pyiceberg.catalog import load_catalog
catalog = load_catalog("floe", type="glue")
print(catalog.list_tables("kafka"))`,
    Spark: [
      `${SPARK},org.apache.iceberg:iceberg-aws-bundle:1.11.0`,
      `${CONF}=org.apache.iceberg.spark.SparkCatalog`,
      `${CONF}.type=glue ${CONF}.warehouse=${warehouse}`,
      `${CONF}.io-impl=org.apache.iceberg.aws.s3.S3FileIO`,
    ].join(' \\\n  '),
  };
}
