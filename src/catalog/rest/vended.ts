// Keys that a catalog hands out with a table, for the files below a prefix.
// Source: Iceberg REST OpenAPI, LoadTableResult (`storage-credentials`, and keys in `config` of older catalogs).

import { asList, asObject, asText, asTextMap, type Json } from '../../formats/iceberg/index.ts';
import type { StoreKeys } from '../../storage/objects/index.ts';

/** The keys in an answer about a table that lies at `location`; none when there are none. */
export function vendedIn(location: string, answer: Json): StoreKeys[] {
  const config = asTextMap(answer['config'] ?? {}, 'config');
  const given = asList(answer['storage-credentials'] ?? [], 'storage-credentials').map((one) => {
    const raw = asObject(one, 'a storage credential');
    const own = asTextMap(raw['config'], 'config of a storage credential');
    return credential(asText(raw['prefix'], 'prefix'), { ...config, ...own });
  });
  const found = given.length > 0 ? given : [credential(`${location}/`, config)];
  return found.filter((one) => one !== undefined);
}

function credential(
  prefix: string,
  config: Readonly<Record<string, string>>,
): StoreKeys | undefined {
  const accessKeyId = config['s3.access-key-id'];
  const secretAccessKey = config['s3.secret-access-key'];
  if (accessKeyId === undefined || secretAccessKey === undefined) return undefined;
  return {
    prefix,
    accessKeyId,
    secretAccessKey,
    sessionToken: config['s3.session-token'] ?? '',
    endpoint: config['s3.endpoint'] ?? '',
    region: config['client.region'] ?? config['s3.region'] ?? '',
  };
}
