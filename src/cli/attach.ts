// What to paste into other engines to read Floe's tables, by engine.

export interface AttachOptions {
  /** HOST:PORT of the catalog. */
  readonly catalog: string;
  /** Empty for a local warehouse. */
  readonly s3Endpoint: string;
}

/** Engine → text. */
export function attachTexts({
  catalog,
  s3Endpoint,
}: AttachOptions): Readonly<Record<string, string>> {
  const uri = `http://${catalog}`;
  const python = s3Endpoint === '' ? '' : `, **{"s3.endpoint": "${s3Endpoint}"}`;
  const spark =
    s3Endpoint === '' ? '' : ` \\\n  --conf spark.sql.catalog.floe.s3.endpoint=${s3Endpoint}`;
  return {
    DuckDB: `INSTALL iceberg; LOAD iceberg;
ATTACH 'warehouse' AS floe (TYPE iceberg, ENDPOINT '${uri}', AUTHORIZATION_TYPE 'none');
SHOW ALL TABLES;`,
    pyiceberg: `from pyiceberg.catalog import load_catalog
catalog = load_catalog("floe", uri="${uri}"${python})
print(catalog.list_tables("kafka"))`,
    Spark: `spark-sql --packages org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:1.11.0 \\
  --conf spark.sql.catalog.floe=org.apache.iceberg.spark.SparkCatalog \\
  --conf spark.sql.catalog.floe.type=rest --conf spark.sql.catalog.floe.uri=${uri}${spark}`,
  };
}
