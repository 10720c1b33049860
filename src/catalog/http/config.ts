// What a client learns first: which endpoints there are, and how to reach the files.
// A table's `config` repeats the latter, since some clients read only that.

/** What is served, as `/v1/config` lists it. Views, scan planning, credentials and signing are not (see UNSERVED.md). */
export const ENDPOINTS: readonly string[] = [
  'GET /v1/{prefix}/namespaces',
  'POST /v1/{prefix}/namespaces',
  'GET /v1/{prefix}/namespaces/{namespace}',
  'HEAD /v1/{prefix}/namespaces/{namespace}',
  'DELETE /v1/{prefix}/namespaces/{namespace}',
  'POST /v1/{prefix}/namespaces/{namespace}/properties',
  'GET /v1/{prefix}/namespaces/{namespace}/tables',
  'POST /v1/{prefix}/namespaces/{namespace}/tables',
  'GET /v1/{prefix}/namespaces/{namespace}/tables/{table}',
  'HEAD /v1/{prefix}/namespaces/{namespace}/tables/{table}',
  'POST /v1/{prefix}/namespaces/{namespace}/tables/{table}',
  'DELETE /v1/{prefix}/namespaces/{namespace}/tables/{table}',
  'POST /v1/{prefix}/namespaces/{namespace}/register',
  'POST /v1/{prefix}/namespaces/{namespace}/tables/{table}/metrics',
  'POST /v1/{prefix}/tables/rename',
  'POST /v1/{prefix}/transactions/commit',
];

/** How the warehouse's S3 is reached; empty texts are left out. */
export interface S3Access {
  readonly endpoint: string;
  readonly region: string;
  readonly pathStyle: boolean;
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken: string;
}

/** Properties by which clients reach the files of a warehouse; none for a local folder. */
export function fileAccess(
  warehouseUri: string,
  s3: S3Access,
  vendCredentials: boolean,
): Readonly<Record<string, string>> {
  if (!warehouseUri.startsWith('s3:')) return {};
  const region = s3.region || (s3.endpoint === '' ? '' : 'us-east-1');
  const access = {
    // ClickHouse strips this text, and no slash after it, off a table's location to find its metadata file.
    's3.endpoint': s3.endpoint === '' ? '' : s3.endpoint.replace(/\/*$/, '/'),
    's3.path-style-access': s3.endpoint === '' ? '' : String(s3.pathStyle),
    // Three names for one thing: Java, pyiceberg and DuckDB each read another.
    'client.region': region,
    's3.region': region,
    region,
  };
  const keys = vendCredentials
    ? {
        's3.access-key-id': s3.accessKeyId,
        's3.secret-access-key': s3.secretAccessKey,
        's3.session-token': s3.sessionToken,
      }
    : {};
  return Object.fromEntries(
    Object.entries({ ...access, ...keys }).filter(([, value]) => value !== ''),
  );
}
