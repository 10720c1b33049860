// ApiVersions (18): what we serve. The reply's header is always version 0, and an unknown version
// is answered by a v0 body with UNSUPPORTED_VERSION, on an open connection (KIP-511). v3 flexible
// with client names and features (KIP-584); v4 lets a feature's lowest version be 0.
import { api, type ReplyOf, type RequestOf, type ResponseOf } from '../api.ts';
import { array, bool, int16, int32, int64, string } from '../fields.ts';

export const apiVersionsApi = api({
  key: 18,
  name: 'ApiVersions',
  versions: '0-4',
  flexible: '3+',
  request: {
    clientSoftwareName: string.since(3),
    clientSoftwareVersion: string.since(3),
  },
  response: {
    errorCode: int16,
    apiKeys: array({
      apiKey: int16,
      minVersion: int16,
      maxVersion: int16,
    }),
    throttleTimeMs: int32.since(1).default(0),
    supportedFeatures: array({
      name: string,
      minVersion: int16,
      maxVersion: int16,
    })
      .since(3)
      .tag(0),
    // −1: features unknown.
    finalizedFeaturesEpoch: int64.since(3).tag(1).default(-1),
    finalizedFeatures: array({
      name: string,
      maxVersionLevel: int16,
      minVersionLevel: int16,
    })
      .since(3)
      .tag(2),
    zkMigrationReady: bool.since(3).tag(3).default(false),
  },
});

export interface ApiVersionsRequest extends RequestOf<typeof apiVersionsApi> {}
export interface ApiVersionsResponse extends ResponseOf<typeof apiVersionsApi> {}
export type ApiVersionsReply = ReplyOf<typeof apiVersionsApi>;
