import { expect, test } from 'vitest';
import { attachTexts } from './attach.ts';

const own = {
  type: 'embedded',
  uri: 'http://127.0.0.1:8181',
  warehouse: '',
  s3Endpoint: '',
} as const;

test('engines are told where the tables are: here, in another catalog, in Glue', () => {
  const here = attachTexts({ ...own, s3Endpoint: 'http://127.0.0.1:9000' });
  expect(here['DuckDB']).toContain("ENDPOINT 'http://127.0.0.1:8181', AUTHORIZATION_TYPE 'none'");
  expect(here['Spark']).toMatch(/ \\\n {2}--conf spark.sql.catalog.floe.s3.endpoint=http/);
  const rest = attachTexts({ ...own, type: 'rest', uri: 'https://polaris', warehouse: 'lake' });
  expect(rest['pyiceberg']).toContain('uri="https://polaris", warehouse="lake"');
  expect(rest['DuckDB']).toContain(
    "ATTACH 'lake' AS floe (TYPE iceberg, ENDPOINT 'https://polaris');",
  );
  const glue = attachTexts({ ...own, type: 'glue', warehouse: 's3://lake/tables' });
  expect(glue['Athena']).toContain('"AwsDataCatalog"."kafka"');
  expect(glue['Spark']).toContain('catalog.floe.type=glue');
});
