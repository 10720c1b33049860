// Reports of engines about their scans and commits: checked, counted, and dropped. What a scan of Spark cost is not
// ours to keep; a report that is malformed tells its sender so. Source: Iceberg REST OpenAPI, ReportMetricsRequest.

import { FloeError } from '../../base/error.ts';
import type { Metrics } from '../../base/metrics.ts';
import {
  asInt,
  asList,
  asObject,
  asSnapshotId,
  asText,
  type Json,
} from '../../formats/iceberg/index.ts';

const REPORTS: Readonly<Record<string, (report: Json) => void>> = {
  'scan-report': (report) => {
    asInt(report['schema-id'], 'schema-id');
    if (report['filter'] === undefined) throw new FloeError('invalid', 'filter is missing');
    for (const id of asList(report['projected-field-ids'], 'projected-field-ids'))
      asInt(id, 'projected-field-ids');
    for (const name of asList(report['projected-field-names'], 'projected-field-names'))
      asText(name, 'projected-field-names');
  },
  'commit-report': (report) => {
    asInt(report['sequence-number'], 'sequence-number');
    asText(report['operation'], 'operation');
  },
};

/** Checks a report and counts it by its kind. @throws FloeError `invalid` naming what is wrong. */
export function takeReport(body: Json, metrics: Metrics): void {
  const type = asText(body['report-type'], 'report-type');
  // Kinds that later clients may send are taken as they are.
  const known = Object.hasOwn(REPORTS, type);
  if (known) {
    asText(body['table-name'], 'table-name');
    asSnapshotId(body['snapshot-id'], 'snapshot-id');
    for (const [name, metric] of Object.entries(asObject(body['metrics'], 'metrics')))
      asObject(metric, `metric "${name}"`);
    REPORTS[type]!(body);
  }
  metrics.count(
    'floe_catalog_reports_total',
    'Scan and commit reports that engines sent to the catalog',
    { report: known ? type : 'other' },
  );
}
