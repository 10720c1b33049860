// What a client learns first: which endpoints there are, and how to reach the files.
// A table's `config` repeats the latter, since some clients read only that.

/** What is served, as `/v1/config` lists it. Scan planning, signing and functions are not (see UNSERVED.md). */
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
  'GET /v1/{prefix}/namespaces/{namespace}/tables/{table}/credentials',
  'POST /v1/{prefix}/namespaces/{namespace}/tables/{table}/unregister',
  'POST /v1/{prefix}/namespaces/{namespace}/register',
  'POST /v1/{prefix}/namespaces/{namespace}/tables/{table}/metrics',
  'POST /v1/{prefix}/tables/rename',
  'POST /v1/{prefix}/transactions/commit',
  'GET /v1/{prefix}/namespaces/{namespace}/views',
  'POST /v1/{prefix}/namespaces/{namespace}/views',
  'GET /v1/{prefix}/namespaces/{namespace}/views/{view}',
  'HEAD /v1/{prefix}/namespaces/{namespace}/views/{view}',
  'POST /v1/{prefix}/namespaces/{namespace}/views/{view}',
  'DELETE /v1/{prefix}/namespaces/{namespace}/views/{view}',
  'POST /v1/{prefix}/namespaces/{namespace}/register-view',
  'POST /v1/{prefix}/views/rename',
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

/** How clients reach the files of a warehouse. */
export interface FileAccess {
  /** Properties for a table's `config` and the catalog's `defaults`; none for a local folder. */
  readonly config: Readonly<Record<string, string>>;
  /** The keys alone, under the prefix that they open; none unless they are handed out. */
  readonly credentials: readonly {
    readonly prefix: string;
    readonly config: Readonly<Record<string, string>>;
  }[];
}

/** Keys stand in `config` too: clients older than `storage-credentials` look there. */
export function fileAccess(
  warehouseUri: string,
  s3: S3Access,
  vendCredentials: boolean,
): FileAccess {
  if (!warehouseUri.startsWith('s3:')) return { config: {}, credentials: [] };
  const region = s3.region || (s3.endpoint === '' ? '' : 'us-east-1');
  const access = filled({
    // ClickHouse strips this text, and no slash after it, off a table's location to find its metadata file.
    's3.endpoint': s3.endpoint === '' ? '' : s3.endpoint.replace(/\/*$/, '/'),
    's3.path-style-access': s3.endpoint === '' ? '' : String(s3.pathStyle),
    // Three names for one thing: Java, pyiceberg and DuckDB each read another.
    'client.region': region,
    's3.region': region,
    region,
  });
  if (!vendCredentials) return { config: access, credentials: [] };
  const keys = filled({
    's3.access-key-id': s3.accessKeyId,
    's3.secret-access-key': s3.secretAccessKey,
    's3.session-token': s3.sessionToken,
  });
  const config = { ...access, ...keys };
  const credentials =
    Object.keys(keys).length === 0 ? [] : [{ prefix: `${warehouseUri}/`, config }];
  return { config, credentials };
}

const filled = (properties: Readonly<Record<string, string>>) =>
  Object.fromEntries(Object.entries(properties).filter(([, value]) => value !== ''));
